package keyed

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/leat-io/leat/internal/budget"
	"github.com/leat-io/leat/internal/state"
)

// TestOneEpochsChangesAreBounded: rows that one row multiplies into within an epoch count in the accounts of memory, and end in an error before
// they take more than an epoch may.
func TestOneEpochsChangesAreBounded(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	b := budget.New("engine", 0)
	tables := state.NewTables(state.Options{Name: "state", Budget: b, EpochBytes: limit})
	defer tables.Close()
	var c Changes
	var key [8]byte
	row := make([]byte, 100)
	for i := range uint64(5_000_000) {
		binary.BigEndian.PutUint64(key[:], i)
		c.Add(key[:], row, 1)
		if i%1000 > 0 {
			continue
		}
		if err := c.Account(tables, "its rows"); err != nil {
			if !strings.Contains(err.Error(), "one epoch changes more than 1 MB of its rows") {
				t.Errorf("error %q", err)
			}
			if used := b.Used(); used < limit || used > 2*limit {
				t.Errorf("%d bytes are accounted for at the end, want a little more than %d", used, limit)
			}
			c.Release(tables)
			if used := b.Used(); used != 0 {
				t.Errorf("%d bytes are accounted for when all is forgotten", used)
			}
			return
		}
	}
	t.Error("there was no end")
}
