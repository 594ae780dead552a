package commitlog

import (
	"container/list"
	"sync"

	"github.com/leat-io/leat/internal/vfs"
)

// fileCache keeps a bounded number of files open. A handle in use is never closed under its user.
type fileCache struct {
	fs   vfs.FS
	most int

	mu        sync.Mutex
	open      map[string]*handle
	idle      list.List // of *handle without users; the front was used last
	forgotten uint64    // how often a file was removed or replaced
	closed    bool
}

type handle struct {
	vfs.File
	cache *fileCache
	path  string
	users int
	elem  *list.Element
	gone  bool    // no longer in open: closed with its last user
	fixed bool    // opened to be read only
	under *handle // of an overlay: the file below it, nil if there is none
}

func newFileCache(fs vfs.FS, most int) *fileCache {
	return &fileCache{fs: fs, most: most, open: map[string]*handle{}}
}

// acquire opens the file, creating it if need be, or returns the handle there is. Others' files do not wait for the disk meanwhile.
func (c *fileCache) acquire(path string) (*handle, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.use(path); h != nil {
		return h, nil
	}
	c.trim(c.most - 1)
	forgotten := c.forgotten
	c.mu.Unlock()
	f, err := c.fs.OpenReadWrite(path, vfs.Unspecified)
	c.mu.Lock()
	if vfs.NoDescriptors(err) && c.idle.Len() > 0 { // those that nobody uses are the first to do without
		c.trim(0)
		f, err = c.fs.OpenReadWrite(path, vfs.Unspecified)
	}
	if err != nil {
		return nil, err
	}
	if h := c.use(path); h != nil { // somebody else was faster
		_ = f.Close()
		return h, nil
	}
	if c.forgotten != forgotten { // it may have been replaced since it was opened
		_ = f.Close()
		if f, err = c.fs.OpenReadWrite(path, vfs.Unspecified); err != nil {
			return nil, err
		}
	}
	h := &handle{File: f, cache: c, path: path, users: 1}
	c.open[path] = h
	return h, nil
}

// acquireWritable is acquire for who writes.
func (c *fileCache) acquireWritable(path string) (*handle, error) {
	h, err := c.acquire(path)
	if err == nil && h.fixed {
		c.forget(path)
		h.release()
		h, err = c.acquire(path)
	}
	return h, err
}

// has says whether the file is open.
func (c *fileCache) has(path string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[path] != nil
}

// adopt takes in a file that was opened to be read only, unless there is a handle already, and returns the handle. It must be known that the
// file is the one of that name.
func (c *fileCache) adopt(path string, f vfs.File) *handle {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.use(path); h != nil {
		_ = f.Close()
		return h
	}
	c.trim(c.most - 1)
	h := &handle{File: f, cache: c, path: path, users: 1, fixed: true}
	c.open[path] = h
	return h
}

// use returns the handle there is, or nil; mu is held.
func (c *fileCache) use(path string) *handle {
	h := c.open[path]
	if h == nil {
		return nil
	}
	if h.elem != nil {
		c.idle.Remove(h.elem)
		h.elem = nil
	}
	h.users++
	return h
}

// trim closes handles that nobody uses, those used longest ago first, until no more than n files are open; mu is held.
func (c *fileCache) trim(n int) {
	for len(c.open) > n && c.idle.Len() > 0 {
		c.closeIdle(c.idle.Back().Value.(*handle))
	}
}

func (c *fileCache) closeIdle(h *handle) {
	c.idle.Remove(h.elem)
	delete(c.open, h.path)
	_ = h.File.Close() // everything was written; syncs go through a new handle
}

func (h *handle) release() {
	if _, ok := h.File.(*overlay); ok {
		if h.under != nil {
			h.under.release()
		}
		return
	}
	c := h.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.users--; h.users > 0 {
		return
	}
	if h.gone || c.closed {
		if !h.gone {
			delete(c.open, h.path)
		}
		_ = h.File.Close()
		return
	}
	h.elem = c.idle.PushFront(h)
	c.trim(c.most)
}

// forget drops the handle of a file that is removed or replaced.
func (c *fileCache) forget(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgotten++
	h := c.open[path]
	if h == nil {
		return
	}
	if h.users == 0 {
		c.closeIdle(h)
		return
	}
	delete(c.open, path)
	h.gone = true
}

func (c *fileCache) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

func (c *fileCache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.trim(0)
}
