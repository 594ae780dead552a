package connector

import (
	"encoding/hex"
	"fmt"
)

// Identified is a source that may be deleted, and made anew under its name: a position is then of another row.
type Identified interface {
	Source
	// Identity names what the positions are of. It is zero while there is nothing, or while it is not known.
	Identity() Identity
}

// Identity is the id of what a source reads, such as a topic's. Its text is hexadecimal.
type Identity [16]byte

// IsZero tells whether it is no identity.
func (i Identity) IsZero() bool { return i == Identity{} }

// MarshalText implements encoding.TextMarshaler.
func (i Identity) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, i[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (i *Identity) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(i)) {
		return fmt.Errorf("an identity has %d digits, not %d", hex.EncodedLen(len(i)), len(text))
	}
	_, err := hex.Decode(i[:], text)
	return err
}
