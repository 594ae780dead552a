package broker

import "sync"

// registry has coordinators by id: each a shell around a pure state, with a lock of its own.
//
// A shell that is taken out of it is marked as gone, under its lock: who has found it before looks again.
type registry[S shell] struct {
	mu     sync.RWMutex
	byID   map[string]S
	closed bool
}

// shell is a pointer to one coordinator.
type shell interface {
	comparable
	guard() (lock *sync.Mutex, gone *bool)
}

// locked returns the shell of an id with its lock held, or nil. create, if it is not nil, makes it if need be, and keeps it in byID; it is called with
// the registry's lock held.
func (r *registry[S]) locked(id string, create func() (S, error)) (S, error) {
	var none S
	for {
		r.mu.RLock()
		s, closed := r.byID[id], r.closed
		r.mu.RUnlock()
		switch {
		case closed:
			return none, ErrStopping
		case s == none && create == nil:
			return none, nil
		case s == none:
			r.mu.Lock()
			if s = r.byID[id]; s == none {
				var err error
				if s, err = create(); err != nil {
					r.mu.Unlock()
					return none, err
				}
			}
			r.mu.Unlock()
		}
		lock, gone := s.guard()
		lock.Lock()
		if !*gone {
			return s, nil
		}
		lock.Unlock()
	}
}

// all are the shells there are, in no order.
func (r *registry[S]) all() []S {
	r.mu.RLock()
	defer r.mu.RUnlock()
	out := make([]S, 0, len(r.byID))
	for _, s := range r.byID {
		out = append(out, s)
	}
	return out
}
