package broker

// Reserve says how much room the node keeps on its disk. Below MinFree producing is refused; the ballast file is given up first, so that
// what must go on (deletes, metadata, checkpoints) has room to do so.
type Reserve struct {
	BallastBytes int64 // size of the ballast file; 0: none
	MinFree      int64 // free bytes below which producing is refused; 0: never refused
	// FreeSpace returns the bytes free for this process where the data lives. Nil means that nobody knows, and nothing is refused.
	FreeSpace func(dir string) (int64, error)
}

// reserveState is what the node knows of its disk.
type reserveState struct {
	low     bool // producing is refused
	ballast bool // the ballast file is there
}

// reserveAction is what is to be done to the ballast file.
type reserveAction uint8

const (
	ballastKeep reserveAction = iota
	ballastDrop
	ballastCreate
)

// decide is the whole policy: low disk gives up the ballast and refuses writes; writes are taken again, and the ballast rebuilt, once there is
// room for both with a quarter of the minimum to spare, so that the state does not flap.
func (r Reserve) decide(s reserveState, free int64) (reserveState, reserveAction) {
	if free < r.MinFree {
		s.low = true
		if s.ballast {
			s.ballast = false
			return s, ballastDrop
		}
		return s, ballastKeep
	}
	missing := r.BallastBytes
	if s.ballast {
		missing = 0
	}
	if free < r.MinFree+missing+r.MinFree/4 {
		return s, ballastKeep
	}
	s.low = false
	if missing > 0 {
		s.ballast = true
		return s, ballastCreate
	}
	return s, ballastKeep
}
