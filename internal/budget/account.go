package budget

import (
	"fmt"
	"math"

	"github.com/leat-io/leat/internal/pgerr"
)

// Account is what one piece of work, an SQL statement say, holds of a budget that many share. It never waits: what it cannot have is an error
// (SQLSTATE 53200). An account may hold no more than it leaves free for the others: alone it gets half of the budget, and however many there are, there
// is always as much left as the largest of them has. A nil Account has no bound. For one goroutine.
type Account struct {
	b    *Budget
	held int64 // taken from b
	used int64 // of held
}

const (
	// accountStep is how much an account takes from its budget at a time, so that small amounts cost no lock.
	accountStep = 256 << 10
	// accountFloor is what every account may have, whatever the others hold: small work goes on when large work has taken all there is.
	accountFloor = 256 << 10
)

// Account opens an account of b.
func (b *Budget) Account() *Account { return &Account{b: b} }

// Take takes n bytes, or says why it does not. It is to be called before the memory is allocated.
func (a *Account) Take(n int64) error {
	if a == nil || n <= 0 {
		return nil
	}
	if a.b == nil {
		return pgerr.Internal("memory is taken for a statement that has ended")
	}
	need := a.used + n - a.held
	if need > 0 && !a.grow(need) {
		return a.refusal(n)
	}
	a.used += n
	return nil
}

func (a *Account) grow(need int64) bool {
	step := (need + accountStep - 1) / accountStep * accountStep
	for _, n := range []int64{step, need} {
		if a.b.tryShare(n, a.held) {
			a.held += n
			return true
		}
	}
	if a.held+need <= accountFloor {
		a.b.Force(need)
		a.held += need
		return true
	}
	return false
}

// tryShare takes n bytes for who has held bytes already, if that leaves as much free as it then holds.
func (b *Budget) tryShare(n, held int64) bool {
	b.tree.mu.Lock()
	defer b.tree.mu.Unlock()
	if !b.fits(n) || b.limit > 0 && held+n > b.limit-b.used-n {
		return false
	}
	b.take(n)
	return true
}

func (a *Account) refusal(n int64) error {
	limit, used := a.b.Limit(), a.b.Used()
	return pgerr.Newf(pgerr.OutOfMemory, "out of memory: the statement holds %s and needs %s more", mega(a.used), mega(n)).
		WithDetail("All statements together may hold %s, of which %s are free; one may hold no more than it leaves to the others.", mega(limit), mega(max(limit-used, 0))).
		WithHint("Restrict what the statement reads or keeps, make a materialized view of it, or start the server with a larger --query-memory.")
}

func mega(n int64) string {
	if n < 10<<20 {
		return fmt.Sprintf("%d kB", (n+1023)>>10)
	}
	return fmt.Sprintf("%d MB", (n+1<<20-1)>>20)
}

// Must is Take for who has no way to return an error: what it cannot have is a panic with that error, for who runs the work to recover.
func (a *Account) Must(n int64) {
	if err := a.Take(n); err != nil {
		panic(err)
	}
}

// Give gives n bytes back.
func (a *Account) Give(n int64) {
	if a == nil || a.b == nil || n <= 0 {
		return
	}
	if n > a.used {
		panic(fmt.Sprintf("budget %s: an account gives %d bytes back and has %d", a.b.name, n, a.used))
	}
	a.used -= n
	if idle := a.held - a.used; idle > 4*accountStep {
		a.b.Release(idle - accountStep)
		a.held = a.used + accountStep
	}
}

// Left is how much could be taken now; what others take changes it.
func (a *Account) Left() int64 {
	if a == nil || a.b == nil {
		return math.MaxInt64
	}
	t := a.b.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	left := int64(math.MaxInt64)
	for p := a.b; p != nil; p = p.parent {
		if p.limit > 0 {
			left = min(left, p.limit-p.used)
		}
	}
	if a.b.limit > 0 {
		left = min(left, (a.b.limit-a.b.used-a.held)/2)
	}
	return max(left, accountFloor-a.held, 0) + a.held - a.used
}

// Used is what was taken and not given back.
func (a *Account) Used() int64 {
	if a == nil {
		return 0
	}
	return a.used
}

// Close gives everything back; Give does nothing after it.
func (a *Account) Close() {
	if a == nil || a.b == nil {
		return
	}
	a.b.Release(a.held)
	*a = Account{}
}
