// Package session runs SQL for clients: it binds statements, answers queries from published epochs, writes tables, and changes the catalog.
// A door hands it text and parameters, and gets columns and batches.
//
// What always holds:
//   - A statement that fails changes nothing; what is written within BEGIN..COMMIT, or within one group of statements, is one journal unit, or none.
//   - A query reads one snapshot: all relations at the same epochs, and at least the session's own committed writes.
//   - Writers of a table come one after another: each sees what the one before it has written.
package session

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/budget"
	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/job"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
	"github.com/leat-io/leat/internal/sql/bind"
	"github.com/leat-io/leat/internal/sql/parse"
	"github.com/leat-io/leat/internal/sql/plan"
)

// Options of an Engine.
type Options struct {
	Jobs   *job.Manager
	Broker *broker.Broker
	Clock  clock.Clock
	Logger *slog.Logger
	// Memory is the root of the node's tree of budgets, which the system view of memory shows; nil shows none.
	Memory *budget.Budget
	// Queries is what statements, and open transactions, take their memory from; nil is a budget of DefaultQueryMemory.
	Queries *budget.Budget
}

// DefaultQueryMemory is what all statements together may hold, in bytes.
const DefaultQueryMemory = 512 << 20

// Engine is what the sessions of a node share.
type Engine struct {
	o       Options
	writers writers
	locks   lockTable
	rowIDs  atomic.Int64
	nextID  atomic.Int32
}

// NewEngine makes an engine over running jobs, and installs the checks of what Kafka clients produce into tables.
func NewEngine(o Options) (*Engine, error) {
	if o.Queries == nil {
		o.Queries = budget.New("queries", DefaultQueryMemory)
	}
	e := &Engine{o: o}
	e.writers.init()
	e.rowIDs.Store(o.Clock.Now().UnixNano())
	for _, r := range o.Jobs.Catalog().Relations() {
		if err := e.guardTopic(r); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// Account opens an account of what statements may hold, for what a door keeps for a client.
func (e *Engine) Account() *budget.Account { return e.o.Queries.Account() }

// Status is where a session is, as the PostgreSQL protocol says it after each statement.
type Status byte

// The states.
const (
	Idle   Status = 'I'
	InTx   Status = 'T'
	Failed Status = 'E' // in a transaction that must be rolled back
)

// Session is one client's. It is used by one goroutine at a time.
type Session struct {
	e        *Engine
	ID       int32
	settings settings
	tx       *tx                  // nil outside of a transaction
	grouped  bool                 // statements belong together up to EndGroup
	now      time.Time            // when the statement began
	local    map[string]covered   // what SET LOCAL has covered, to be restored at the transaction's end
	changed  bool                 // a setting, since the client was told
	told     map[string]string    // the values of reported settings as the client knows them
	failed   bool                 // the transaction must be rolled back
	writes   []job.Position       // the session's own writes that a query must see
	kept     map[string]*Prepared // PREPARE, and Parse of the protocol
	keptSize int                  // bytes of their texts
	keeps    *budget.Account      // of them
	out      Output
	memory   *budget.Account // of the statement that runs
	stop     *atomic.Bool    // set when it is to end
}

// NewSession starts a session for a user on a database; both are only names.
func (e *Engine) NewSession(user, database string) *Session {
	s := &Session{e: e, ID: e.nextID.Add(1), kept: map[string]*Prepared{}, keeps: e.Account()}
	s.settings.init(user, database)
	return s
}

// Close ends the session; a transaction that is open is rolled back.
func (s *Session) Close() {
	if s.tx != nil {
		s.finish(s.tx)
		s.tx = nil
	}
	s.keeps.Close()
}

// Status is the transaction's.
func (s *Session) Status() Status {
	switch {
	case s.tx == nil:
		return Idle
	case s.failed:
		return Failed
	}
	return InTx
}

// Zone is the session's time zone, in which timestamptz values are shown.
func (s *Session) Zone() *time.Location { return s.settings.zone }

// IdleTimeout is how long the session may wait for its client, 0 for ever: a transaction that is open keeps others from its tables.
func (s *Session) IdleTimeout() time.Duration {
	if s.tx == nil {
		return 0
	}
	return s.settings.idleTimeout
}

// Setting returns the value of a parameter.
func (s *Session) Setting(name string) (string, bool) { return s.settings.get(name) }

// Output takes what a statement gives.
type Output interface {
	// Columns comes before the first row of a statement that returns rows.
	Columns([]plan.Column) error
	// Rows takes rows whose columns are those of Columns; weights do not matter. The batch is the session's again when it returns.
	Rows(*column.Batch) error
	// Notice takes a message for the client that is not an error.
	Notice(bind.Notice) error
}

// Parse splits a text into statements. The error, if any, is a *pgerr.Error with a position.
func (s *Session) Parse(text string) ([]parse.Statement, error) {
	statements, err := parse.Parse(text)
	if err != nil {
		s.abort()
		return nil, err
	}
	return statements, nil
}

// Prepared is a statement with the types of its parameters and columns. It is bound again if the catalog has changed since.
type Prepared struct {
	Text   string // the whole text that the statement's spans refer to
	Stmt   ast.Stmt
	Params []column.Type
	// Columns are the visible columns of the result, nil if there is none.
	Columns []plan.Column
	// declared are the parameter types that the client gave, and all of them once they are known: they stay when the statement is bound again.
	declared []column.Type
	// promised: a client knows the columns, from before the statement runs.
	promised bool
}

// Prepare binds a statement so far that its parameters and columns are known. params are the types that the client declared, Unknown ones to be
// inferred.
func (s *Session) Prepare(stmt ast.Stmt, text string, params []column.Type) (*Prepared, error) {
	p := &Prepared{Text: text, Stmt: stmt, Params: params, declared: params}
	if s.failed && !endsTransaction(stmt) {
		return nil, errAborted()
	}
	if cols, ok := s.ownColumns(stmt); ok {
		p.Columns = cols
		return p, nil
	}
	b, err := s.bind(p)
	if err != nil {
		s.abort()
		return nil, err
	}
	p.Params, p.Columns = b.Common().Params, b.Common().Columns
	p.declared = p.Params
	return p, nil
}

// keepsPromise refuses a result that is not the one that the client was told of.
func (p *Prepared) keepsPromise(columns []plan.Column) error {
	if !p.promised || slices.EqualFunc(p.Columns, columns, func(a, b plan.Column) bool { return a.Name == b.Name && a.Type == b.Type }) {
		return nil
	}
	return pgerr.New("0A000", "cached plan must not change result type").
		WithDetail("What the statement reads was made anew, with other columns, after it was prepared.").WithHint("Prepare it again.")
}

func (s *Session) bind(p *Prepared) (bind.Bound, error) {
	return bind.Statement(s.env(s.e.o.Jobs.Catalog(), p), p.Stmt)
}

// context is what expressions of the statement see.
func (s *Session) context() *expr.Context {
	now := s.statementTime()
	if s.tx != nil {
		now = s.tx.began // now() is the transaction's start, as in PostgreSQL
	}
	return &expr.Context{Now: now.UnixMicro(), Zone: s.settings.zone, Memory: s.memory, Stop: s.stop}
}

// Memory is what the statement that runs takes what it keeps from, nil when none does. An Output takes from it, too.
func (s *Session) Memory() *budget.Account { return s.memory }

// statementTime is when the statement that runs began.
func (s *Session) statementTime() time.Time {
	if s.now.IsZero() {
		return s.e.o.Clock.Now()
	}
	return s.now
}

// Execute runs a statement. args are its parameters: nodes of constants. It returns the command tag.
func (s *Session) Execute(ctx context.Context, p *Prepared, args []*expr.Node, out Output) (tag string, err error) {
	if s.failed && !endsTransaction(p.Stmt) {
		return "", errAborted()
	}
	s.out, s.now = out, s.e.o.Clock.Now()
	defer func() { s.out, s.now = nil, time.Time{} }()
	if d := s.settings.timeout; d > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, d, pgerr.New("57014", "canceling statement due to statement timeout"))
		defer cancel()
		ctx = limited
	}
	defer s.start(ctx)()
	if tag, err = s.execute(ctx, p, args); err != nil {
		s.abort()
		return "", reason(ctx, err)
	}
	return tag, nil
}

// start gives a statement its memory, and lets what takes long within it see that it is to end. It returns what ends that.
func (s *Session) start(ctx context.Context) (end func()) {
	memory, stop := s.e.o.Queries.Account(), new(atomic.Bool)
	s.memory, s.stop = memory, stop
	unwatch := context.AfterFunc(ctx, func() { stop.Store(true) })
	return func() {
		unwatch()
		memory.Close()
		s.memory, s.stop = nil, nil
	}
}

// reason puts what has ended a context in the place of the errors that came of it.
func reason(ctx context.Context, err error) error {
	why := (*pgerr.Error)(nil)
	if err == nil || context.Cause(ctx) == nil || errors.As(err, &why) && why.Code == "40003" {
		return err
	}
	if errors.As(context.Cause(ctx), &why) {
		return why // a cancel request, or statement_timeout
	}
	return pgerr.New(pgerr.AdminShutdown, "terminating connection due to administrator command")
}

func (s *Session) execute(ctx context.Context, p *Prepared, args []*expr.Node) (string, error) {
	if run := s.ownStatement(p, args); run != nil {
		return run(ctx)
	}
	b, err := s.bind(p)
	if err != nil {
		return "", err
	}
	if err := p.keepsPromise(b.Common().Columns); err != nil {
		return "", err
	}
	for _, n := range b.Common().Notices {
		if err := s.out.Notice(n); err != nil {
			return "", err
		}
	}
	switch b := b.(type) {
	case *bind.Select:
		return s.query(ctx, b, args)
	case *bind.Insert:
		return s.insert(ctx, b, args)
	case *bind.Update:
		return s.update(ctx, b, args)
	case *bind.Delete:
		return s.delete(ctx, b, args)
	case *bind.Create:
		return s.create(ctx, b, p, args)
	case *bind.Drop:
		return s.drop(ctx, b)
	case *bind.Explain:
		return b.Tag, s.lines(b.Columns, b.Lines)
	case *bind.Nothing:
		return b.Tag, nil
	}
	return "", pgerr.Newf("0A000", "this statement is not supported yet")
}

// Fail marks the transaction, if there is one, as failed: what a client sends is wrong outside of any statement.
func (s *Session) Fail() { s.abort() }

// abort marks the transaction, if there is one, as failed.
func (s *Session) abort() {
	if s.tx != nil {
		s.failed = true
	}
}

func errAborted() error {
	return pgerr.New("25P02", "current transaction is aborted, commands ignored until end of transaction block")
}

func endsTransaction(stmt ast.Stmt) bool {
	t, ok := stmt.(*ast.Transaction)
	return ok && (t.Kind == ast.Commit || t.Kind == ast.Rollback || t.Kind == ast.RollbackToSavepoint)
}

// lines gives a one-column result, a row a line.
func (s *Session) lines(cols []plan.Column, lines []string) error {
	if err := s.out.Columns(cols); err != nil {
		return err
	}
	b := column.NewBatch([]column.Type{cols[0].Type}, len(lines))
	for _, l := range lines {
		b.Cols[0].AppendString(l)
		b.EndRow(1)
	}
	return s.out.Rows(b)
}

// table gives a result of texts.
func (s *Session) table(names []string, rows [][]string) error {
	if err := s.out.Columns(textColumns(names...)); err != nil {
		return err
	}
	types := make([]column.Type, len(names))
	for i := range types {
		types[i] = column.TText
	}
	b := column.NewBatch(types, len(rows))
	for _, row := range rows {
		for i, cell := range row {
			b.Cols[i].AppendString(cell)
		}
		b.EndRow(1)
	}
	return s.out.Rows(b)
}

func textColumns(names ...string) []plan.Column {
	cols := make([]plan.Column, len(names))
	for i, n := range names {
		cols[i] = plan.Column{Name: n, Type: column.TText}
	}
	return cols
}

// writers are the tables' writers, one for each table that was written to.
type writers struct {
	mu sync.Mutex
	by map[uint64]*writer
}

func (w *writers) init() { w.by = map[uint64]*writer{} }

func (w *writers) get(id uint64) *writer {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.by[id]
	if x == nil {
		x = newWriter(id)
		w.by[id] = x
	}
	return x
}

func (w *writers) forget(id uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.by, id)
}
