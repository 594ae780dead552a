package flow

// Options are an island's.
type Options struct {
	Workers int
	// InFlightBytes bounds what is in flight between workers, DefaultInFlightBytes if 0.
	InFlightBytes int64
	// Seed, when not 0, runs all workers on the caller's goroutine, stepped in an order that depends on it alone.
	Seed uint64
	// BatchRows is how many rows a source reads at a time, column.MaxRows if 0.
	BatchRows int
	// Own gives each job its Tables (see package state) on a worker; added with the state tables.
}

// DefaultInFlightBytes is the budget of what is in flight between the workers of an island.
const DefaultInFlightBytes = 32 << 20

// Island is the graph of jobs that share what they read, and its workers. One goroutine uses it at a time.
type Island struct {
	o Options
}

// NewIsland makes an empty island.
func NewIsland(o Options) (*Island, error) { return newIsland(o) }

// Attach adds a job to the graph. Its inputs that are tables or views must be attached.
func (i *Island) Attach(spec JobSpec) error { return i.attach(spec) }

// Detach removes a job; the jobs that read it must have been detached.
func (i *Island) Detach(job uint64) error { return i.detach(job) }

// Readers are the sources' readers, by id. Valid until the next Attach, Detach or Run.
func (i *Island) Readers() []Reader { return i.readerList() }

// Run takes an epoch to completion on all workers.
func (i *Island) Run(e *Epoch) (*Result, error) { return i.run(e) }

// Close gives back what the island's workers hold.
func (i *Island) Close() error { return i.close() }
