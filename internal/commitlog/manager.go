package commitlog

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/vfs"
)

// Manager holds what all partitions of a node share: the bounded set of open files, the list of dirty logs, and the
// checkpoint of their offsets.
type Manager struct {
	o     ManagerOptions
	files *fileCache

	mu       sync.Mutex
	logs     map[string]*Log
	dirty    map[*Log]struct{}
	recorded map[string]recordedLog // of the last checkpoint; nil if there is none
	syncMu   sync.Mutex
	folders  map[string]struct{} // that are there

	cold chan struct{} // a slot for each read at a time of what is not in memory

	buffered atomic.Int64 // bytes of tails, by capacity
	flushing atomic.Bool
	urgent   chan struct{}
	closing  chan struct{}

	closeOnce sync.Once
	flushers  sync.WaitGroup
}

// recordedLog is a line of the checkpoint.
type recordedLog struct {
	id         [16]byte
	start, end int64
}

const (
	offsetsName = "log-offsets-checkpoint"
	offsetsHead = "leat log offsets, version 1\n"
	// syncers bounds how many files are synced at a time; more gain nothing.
	syncers = 16
)

// NewManager reads the offsets of the last checkpoint.
func NewManager(o ManagerOptions) (*Manager, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Clock == nil {
		o.Clock = clock.Real
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxFiles <= 0 {
		o.MaxFiles = 1024
	}
	if err := vfs.MkdirAll(o.FS, o.Dir); err != nil {
		return nil, fmt.Errorf("open log folder: %w", err)
	}
	m := &Manager{o: o, files: newFileCache(o.FS, o.MaxFiles), logs: map[string]*Log{}, dirty: map[*Log]struct{}{}, urgent: make(chan struct{}, 1), closing: make(chan struct{}), cold: make(chan struct{}, max(4, 2*runtime.GOMAXPROCS(0)))}
	names, err := m.Names()
	if err != nil {
		return nil, fmt.Errorf("open log folder: %w", err)
	}
	m.folders = make(map[string]struct{}, len(names))
	for _, name := range names {
		m.folders[name] = struct{}{}
	}
	path := o.FS.PathJoin(o.Dir, offsetsName)
	b, err := vfs.ReadFile(o.FS, path, 1<<30)
	switch {
	case vfs.NotExist(err):
		if len(names) == 0 {
			// From now on a log that no checkpoint names is empty, whatever a crash left in its folder.
			m.recorded = map[string]recordedLog{}
			return m, m.writeOffsets(m.recorded)
		}
		o.Logger.Warn("the log folder has no checkpoint of offsets: partitions are read to their ends", "file", path)
	case err != nil:
		return nil, fmt.Errorf("open log folder: %w", err)
	default:
		if m.recorded, err = decodeOffsets(string(b)); err != nil {
			return nil, &CorruptError{File: path, Reason: err.Error()}
		}
	}
	return m, nil
}

// The checkpoint is text: a line with the version, a line "<folder> <topic id> <start> <end>" for each log, and a line with the
// CRC32C of all before it.

func encodeOffsets(logs map[string]recordedLog) []byte {
	names := make([]string, 0, len(logs))
	for name := range logs {
		names = append(names, name)
	}
	slices.Sort(names)
	b := []byte(offsetsHead)
	for _, name := range names {
		r := logs[name]
		b = fmt.Appendf(b, "%s %x %d %d\n", name, r.id[:], r.start, r.end)
	}
	return fmt.Appendf(b, "%08x\n", crc32.Checksum(b, castagnoli))
}

func decodeOffsets(s string) (map[string]recordedLog, error) {
	rest, ok := strings.CutPrefix(s, offsetsHead)
	if !ok {
		return nil, errors.New("unknown version; use the version of the program that wrote it")
	}
	if len(rest) < 9 || fmt.Sprintf("%08x\n", crc32.Checksum([]byte(s[:len(s)-9]), castagnoli)) != rest[len(rest)-9:] {
		return nil, errors.New("its checksum does not match")
	}
	logs := map[string]recordedLog{}
	for line := range strings.Lines(rest[:len(rest)-9]) {
		var name, id string
		var r recordedLog
		fields := strings.Split(strings.TrimSuffix(line, "\n"), " ")
		if len(fields) != 4 {
			return nil, fmt.Errorf("line %q: %d fields instead of 4", line, len(fields))
		}
		name, id = fields[0], fields[1]
		for i, to := range []*int64{&r.start, &r.end} {
			var err error
			if *to, err = strconv.ParseInt(fields[2+i], 10, 64); err != nil {
				return nil, fmt.Errorf("line %q: %w", line, err)
			}
		}
		if len(id) != 2*len(r.id) {
			return nil, fmt.Errorf("line %q: not a topic id", line)
		}
		if _, err := hex.Decode(r.id[:], []byte(id)); err != nil {
			return nil, fmt.Errorf("line %q: not a topic id", line)
		}
		logs[name] = r
	}
	return logs, nil
}

func (m *Manager) writeOffsets(logs map[string]recordedLog) error {
	return vfs.WriteFile(m.o.FS, m.o.Dir, offsetsName, encodeOffsets(logs))
}

// Open returns the log of the partition in folder name ("topic-0"); id tells it from an earlier topic of the same name, whose files
// are removed. It opens no file: that is left to the first use.
func (m *Manager) Open(name string, id [16]byte, c Config) (*Log, error) {
	if name == "" || strings.ContainsAny(name, "/\\ \n\t") || name == "." || name == ".." {
		return nil, fmt.Errorf("%q cannot be the folder of a partition", name)
	}
	c.setDefaults()
	m.mu.Lock()
	if m.logs[name] != nil {
		m.mu.Unlock()
		return nil, fmt.Errorf("log %s is open already", name)
	}
	l := &Log{m: m, name: name, id: id, dir: m.o.FS.PathJoin(m.o.Dir, name), config: c, known: m.recorded != nil}
	if r, ok := m.recorded[name]; ok && r.id == id {
		l.start, l.end, l.recorded = r.start, r.end, r.end
	} else {
		l.fresh = true
	}
	m.logs[name] = l
	m.mu.Unlock()
	if !l.known {
		// Its end is not known before its files are read. Damage shows at the first use, as that of any log.
		l.mu.Lock()
		err := l.load()
		l.mu.Unlock()
		if err != nil && !errors.Is(err, ErrCorrupt) {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

// warm gives a slot of cold back.
func (m *Manager) warm() { <-m.cold }

// present says whether the log's folder is there.
func (m *Manager) present(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.folders[name]
	return ok
}

func (m *Manager) notePresent(name string, is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if is {
		m.folders[name] = struct{}{}
	} else {
		delete(m.folders, name)
	}
}

func (m *Manager) markDirty(l *Log) {
	m.mu.Lock()
	m.dirty[l] = struct{}{}
	m.mu.Unlock()
}

// Sync makes everything appended so far durable, then records the starts and ends of all logs. barrier, if not nil, must return only when
// everything that was appended before it was called is durable in the journal: what is recorded is not cut by the next
// start. To be called before journal.Checkpoint, for units that were applied before Sync.
func (m *Manager) Sync(ctx context.Context, barrier func(context.Context) error) error {
	m.syncMu.Lock()
	defer m.syncMu.Unlock()
	m.mu.Lock()
	logs := make(map[string]recordedLog, len(m.logs))
	open := make([]*Log, 0, len(m.logs))
	for _, l := range m.logs {
		open = append(open, l)
	}
	m.mu.Unlock()
	for _, l := range open {
		l.mu.Lock()
		if !l.closed {
			logs[l.name] = recordedLog{id: l.id, start: l.start, end: l.end}
		}
		l.mu.Unlock()
	}
	// Taken after the ends: a log that an append makes dirty in between is synced, too, since its end may be among those.
	m.mu.Lock()
	dirty := m.dirty
	m.dirty = make(map[*Log]struct{}, len(dirty))
	m.mu.Unlock()
	// The dirty ones come back on any error.
	failed := func(err error) error {
		m.mu.Lock()
		for l := range dirty {
			m.dirty[l] = struct{}{}
		}
		m.mu.Unlock()
		return err
	}
	if barrier != nil {
		if err := barrier(ctx); err != nil {
			return failed(fmt.Errorf("sync logs: wait for the journal: %w", err))
		}
	}
	var wg sync.WaitGroup
	var errMu sync.Mutex
	var first error
	slots := make(chan struct{}, syncers)
	for l := range dirty {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := l.Sync(); err != nil && !errors.Is(err, ErrClosed) {
				errMu.Lock()
				first = errors.Join(first, err)
				errMu.Unlock()
			}
		})
	}
	wg.Wait()
	if first != nil {
		return failed(first)
	}
	if err := vfs.SyncDir(m.o.FS, m.o.Dir); err != nil {
		return failed(err)
	}
	if err := m.writeOffsets(logs); err != nil {
		return failed(fmt.Errorf("record log offsets: %w", err))
	}
	m.mu.Lock()
	m.recorded = logs
	m.mu.Unlock()
	for _, l := range open {
		if r, ok := logs[l.name]; ok {
			l.mu.Lock()
			l.recorded = r.end
			l.mu.Unlock()
		}
	}
	return nil
}

// DirtyLogs is how many logs Sync would have to sync.
func (m *Manager) DirtyLogs() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.dirty)
}

// OpenFiles is how many file handles are open.
func (m *Manager) OpenFiles() int { return m.files.count() }

// Names lists the folders of partitions on disk.
func (m *Manager) Names() ([]string, error) {
	all, err := m.o.FS.List(m.o.Dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, n := range all {
		st, err := m.o.FS.Stat(m.o.FS.PathJoin(m.o.Dir, n))
		if err == nil && st.IsDir() {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Remove deletes the folder of a partition that is not open: one that a crash left behind.
func (m *Manager) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.logs[name] != nil {
		return fmt.Errorf("log %s is open", name)
	}
	delete(m.folders, name)
	return m.o.FS.RemoveAll(m.o.FS.PathJoin(m.o.Dir, name))
}

// Close closes all logs and files. Call Sync before it, when the journal has ended.
func (m *Manager) Close() error {
	m.mu.Lock()
	logs := make([]*Log, 0, len(m.logs))
	for _, l := range m.logs {
		logs = append(logs, l)
	}
	m.mu.Unlock()
	var err error
	for _, l := range logs {
		err = errors.Join(err, l.Close())
	}
	m.closeOnce.Do(func() { close(m.closing) })
	m.flushers.Wait()
	m.files.close()
	return err
}
