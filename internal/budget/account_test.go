package budget

import (
	"errors"
	"testing"

	"github.com/leat-io/leat/internal/pgerr"
)

func TestAccountsLeaveAsMuchAsTheyHold(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	root := New("node", 0)
	queries := root.Child("queries", 64*mb)
	var accounts []*Account
	for k := range 100 {
		a := queries.Account()
		accounts = append(accounts, a)
		left := a.Left()
		for a.Take(mb/4) == nil {
		}
		if got := a.Used(); got > left || got < left-mb/4 {
			t.Errorf("account %d got %d bytes where there were %d", k, got, left)
		}
		switch {
		case k == 0 && a.Used() != 32*mb:
			t.Errorf("alone it got %d bytes", a.Used())
		case k == 1 && a.Used() != 16*mb:
			t.Errorf("the second got %d bytes", a.Used())
		case a.Used() < mb/4:
			t.Errorf("account %d got %d bytes", k, a.Used())
		}
	}
	if used := root.Used(); used > 64*mb+100*accountFloor {
		t.Errorf("all together hold %d bytes", used)
	}
	var refused *pgerr.Error
	if err := accounts[0].Take(mb); !errors.As(err, &refused) || refused.Code != pgerr.OutOfMemory || refused.Hint == "" {
		t.Errorf("refused with %v", err)
	}
	for _, a := range accounts {
		a.Give(a.Used() / 2)
		a.Close()
	}
	if root.Used() != 0 {
		t.Errorf("%d bytes are still held", root.Used())
	}
}

func TestAccountsGiveBack(t *testing.T) {
	t.Parallel()
	b := New("queries", 0)
	a := b.Account()
	a.Must(10 << 20)
	a.Give(10 << 20)
	if b.Used() > accountStep {
		t.Errorf("%d bytes held of none", b.Used())
	}
	var none *Account
	none.Must(1 << 40)
	none.Give(1)
	none.Close()
	defer func() {
		if recover() == nil {
			t.Error("giving back too much did not panic")
		}
	}()
	a.Give(1)
}
