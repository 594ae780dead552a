package commitlog

import (
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/leat-io/leat/internal/vfs"
)

// cleanState is how far a log is compacted. It is kept in a file of its own, which is written before the first segment of a pass is replaced (holes) and
// after the last one (the rest).
type cleanState struct {
	holes         int64 // offsets below may be missing
	dirty         int64 // offsets from here on were never compacted
	horizon       int64 // the latest delete horizon below dirty, in milliseconds; -1: there is none
	transactional bool  // transactional batches or markers are left below dirty
}

const (
	cleanName = "cleaner-checkpoint"
	cleanHead = "leat cleaner, version 1\n"
)

func (s cleanState) encode() []byte {
	b := fmt.Appendf([]byte(cleanHead), "%d %d %d %t\n", s.holes, s.dirty, s.horizon, s.transactional)
	return fmt.Appendf(b, "%08x\n", crc32.Checksum(b, castagnoli))
}

func decodeCleanState(b string) (cleanState, error) {
	s := cleanState{horizon: -1}
	rest, ok := strings.CutPrefix(b, cleanHead)
	if !ok {
		return s, errors.New("unknown version")
	}
	if len(rest) < 9 || fmt.Sprintf("%08x\n", crc32.Checksum([]byte(b[:len(b)-9]), castagnoli)) != rest[len(rest)-9:] {
		return s, errors.New("its checksum does not match")
	}
	if _, err := fmt.Sscanf(rest, "%d %d %d %t\n", &s.holes, &s.dirty, &s.horizon, &s.transactional); err != nil || s.holes < 0 || s.dirty < 0 || s.horizon < -1 {
		return cleanState{horizon: -1}, errors.New("malformed")
	}
	return s, nil
}

// loadCleanState reads the state from the folder with the files of these names; mu is held. Without it, holes are taken for granted where there may be
// some, and all is compacted again.
func (l *Log) loadCleanState(names []string) error {
	if !slices.Contains(names, cleanName) {
		l.clean = cleanState{horizon: -1}
		if l.config.Compact && l.known {
			l.clean.holes, l.clean.transactional = l.end, true
		}
		return nil
	}
	path := l.m.o.FS.PathJoin(l.dir, cleanName)
	b, err := vfs.ReadFile(l.m.o.FS, path, 1<<20)
	if err != nil {
		return fmt.Errorf("open log %s: %w", l.name, err)
	}
	if l.clean, err = decodeCleanState(string(b)); err != nil {
		l.m.o.Logger.Warn("the file that says how far a partition is compacted is damaged; all is compacted again", "file", path, "error", err)
		l.clean.holes, l.clean.transactional = l.end, true
	}
	return nil
}

// writeCleanState makes the state durable and, when it is, the log's. No lock is held.
func (l *Log) writeCleanState(s cleanState) error {
	l.mu.Lock()
	same := l.clean == s
	l.mu.Unlock()
	if same {
		return nil
	}
	if err := vfs.WriteFile(l.m.o.FS, l.dir, cleanName, s.encode()); err != nil {
		return fmt.Errorf("record the compaction of %s: %w", l.name, err)
	}
	l.mu.Lock()
	l.clean = s
	l.mu.Unlock()
	return nil
}
