package session

import (
	"context"
	"slices"
	"strings"

	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
	"github.com/leat-io/leat/internal/sql/bind"
)

// maxSavepoints bounds the savepoints of a transaction.
const maxSavepoints = 10_000

// savepoint is a moment of a transaction that it can go back to.
type savepoint struct {
	name     string
	records  map[*txTable]int // how many each table had; one that is not there had none
	bytes    int
	settings *settings // as they were, once one of them has changed since
}

// Group makes what follows one implicit transaction, up to EndGroup: the statements of one simple query, or what a client sends before Sync. BEGIN makes
// an explicit one of it.
func (s *Session) Group() { s.grouped = true }

// EndGroup ends what Group began: an implicit transaction is committed, or rolled back if a statement has failed.
func (s *Session) EndGroup(ctx context.Context) error {
	s.grouped = false
	if s.tx == nil || !s.tx.implicit {
		return nil
	}
	if s.failed {
		s.rollback()
		return nil
	}
	return reason(ctx, s.commitTx(ctx))
}

// implicit begins the transaction of a group, if there is a group and no transaction yet.
func (s *Session) implicit() {
	if s.tx == nil && s.grouped {
		s.tx = s.newTx()
		s.tx.implicit = true
	}
}

// alone is for what cannot be part of a transaction: it is refused within BEGIN..COMMIT, and in a group it stands between two transactions.
func (s *Session) alone(ctx context.Context, what string) error {
	switch {
	case s.tx == nil:
		return nil
	case s.tx.implicit:
		return s.commitTx(ctx)
	}
	return pgerr.Newf("25001", "%s cannot run inside a transaction block", what).WithHint("Run it before BEGIN or after COMMIT: it takes effect at once and for itself.")
}

func (s *Session) commitTx(ctx context.Context) error {
	t := s.tx
	s.tx, s.failed = nil, false
	err := s.commit(ctx, t)
	s.finish(t)
	if err != nil && t.before != nil {
		s.restore(t.before)
	} else {
		s.endLocal()
	}
	return err
}

func (s *Session) rollback() {
	t := s.tx
	s.finish(t)
	s.tx, s.failed = nil, false
	if t.before != nil {
		s.restore(t.before)
	}
}

// begin starts an explicit transaction.
func (s *Session) begin(modes ast.TransactionModes) error {
	if err := checkIsolation(modes.Isolation); err != nil {
		return err
	}
	if s.tx == nil {
		s.tx = s.newTx()
	}
	s.tx.implicit = false
	if modes.Access != "" {
		s.tx.readOnly = modes.Access == "READ ONLY"
	}
	return nil
}

// checkIsolation refuses what would be promised and not kept: each statement reads the newest published epochs.
func checkIsolation(level string) error {
	switch strings.ToUpper(level) {
	case "", "READ COMMITTED", "READ UNCOMMITTED", "DEFAULT":
		return nil
	}
	return pgerr.Newf("0A000", "isolation level %s is not supported, only READ COMMITTED", strings.ToUpper(level)).
		WithHint("Writers of a table come one after another whatever the level; one SELECT reads everything at one instant.")
}

// transaction runs BEGIN, COMMIT and so on.
func (s *Session) transaction(ctx context.Context, st *ast.Transaction) (string, error) {
	explicit := s.tx != nil && !s.tx.implicit
	switch st.Kind {
	case ast.Begin:
		tag := "BEGIN"
		if st.Start {
			tag = "START TRANSACTION"
		}
		if explicit {
			return tag, s.out.Notice(bind.Notice{Code: "25001", Message: "there is already a transaction in progress"})
		}
		return tag, s.begin(st.Modes)
	case ast.Commit, ast.Rollback:
		return s.end(ctx, st, explicit)
	case ast.SetTransaction, ast.SetSessionTransaction:
		if err := checkIsolation(st.Modes.Isolation); err != nil {
			return "", err
		}
		if st.Modes.Access == "" {
			return "SET", nil
		}
		readOnly := st.Modes.Access == "READ ONLY"
		if st.Kind == ast.SetSessionTransaction {
			value := "off"
			if readOnly {
				value = "on"
			}
			return "SET", s.change("default_transaction_read_only", value)
		}
		if s.tx == nil {
			return "SET", s.out.Notice(bind.Notice{Code: "25P01", Message: "SET TRANSACTION can only be used in transaction blocks"})
		}
		s.tx.readOnly = readOnly
		return "SET", nil
	case ast.Savepoint, ast.ReleaseSavepoint, ast.RollbackToSavepoint:
		return s.savepoint(st, explicit)
	}
	return "", pgerr.New("0A000", "two-phase commit is not supported").At(st.Pos() + 1)
}

// end runs COMMIT and ROLLBACK.
func (s *Session) end(ctx context.Context, st *ast.Transaction, explicit bool) (string, error) {
	tag := "COMMIT"
	if st.Kind == ast.Rollback {
		tag = "ROLLBACK"
	}
	if !explicit {
		if st.Chain {
			return "", pgerr.Newf("25P01", "%s AND CHAIN can only be used in transaction blocks", tag)
		}
		if err := s.out.Notice(bind.Notice{Code: "25P01", Message: "there is no transaction in progress"}); err != nil || s.tx == nil {
			return tag, err
		}
	}
	readOnly := s.tx.readOnly
	if s.failed || st.Kind == ast.Rollback {
		tag = "ROLLBACK"
		s.rollback()
	} else if err := s.commitTx(ctx); err != nil {
		return "", err
	}
	if st.Chain {
		s.tx = s.newTx()
		s.tx.readOnly = readOnly
	}
	return tag, nil
}

// savepoint runs SAVEPOINT, RELEASE and ROLLBACK TO.
func (s *Session) savepoint(st *ast.Transaction, explicit bool) (string, error) {
	tag := map[ast.TransactionKind]string{ast.Savepoint: "SAVEPOINT", ast.ReleaseSavepoint: "RELEASE", ast.RollbackToSavepoint: "ROLLBACK"}[st.Kind]
	if !explicit {
		what := map[ast.TransactionKind]string{ast.Savepoint: "SAVEPOINT", ast.ReleaseSavepoint: "RELEASE SAVEPOINT", ast.RollbackToSavepoint: "ROLLBACK TO SAVEPOINT"}[st.Kind]
		return "", pgerr.Newf("25P01", "%s can only be used in transaction blocks", what)
	}
	t := s.tx
	if st.Kind == ast.Savepoint {
		if len(t.saves) >= maxSavepoints {
			return "", pgerr.Newf("54000", "a transaction can have %d savepoints", maxSavepoints).WithHint("Release those that are not needed any more.")
		}
		p := savepoint{name: st.Name, records: make(map[*txTable]int, len(t.ordered)), bytes: t.bytes}
		for _, tab := range t.ordered {
			p.records[tab] = len(tab.records)
		}
		t.saves = append(t.saves, p)
		return tag, nil
	}
	at := len(t.saves) - 1
	for at >= 0 && t.saves[at].name != st.Name {
		at--
	}
	if at < 0 {
		return "", pgerr.Newf("3B001", "savepoint \"%s\" does not exist", st.Name).At(st.Pos() + 1)
	}
	if st.Kind == ast.ReleaseSavepoint {
		t.saves = slices.Delete(t.saves, at, len(t.saves))
		return tag, nil
	}
	p := &t.saves[at]
	t.ordered = slices.DeleteFunc(t.ordered, func(tab *txTable) bool {
		n, had := p.records[tab]
		if had {
			tab.undo(t, n)
			return false
		}
		// First written to since: others may do so now.
		tab.release()
		delete(t.tables, tab.relation.ID)
		s.e.locks.release(tab.w)
		return true
	})
	t.bytes = p.bytes
	t.saves = slices.Delete(t.saves, at+1, len(t.saves))
	s.failed = false
	if before := p.settings; before != nil {
		p.settings = nil
		s.restore(before)
	}
	return tag, nil
}
