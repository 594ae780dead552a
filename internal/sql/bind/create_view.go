package bind

import (
	"slices"
	"strconv"
	"strings"

	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
	"github.com/leat-io/leat/internal/sql/plan"
)

// createView is CREATE VIEW and CREATE MATERIALIZED VIEW.
func (b *binder) createView(s *ast.CreateView) (Bound, error) {
	kind, tag := catalog.View, "CREATE VIEW"
	if s.Materialized {
		kind, tag = catalog.MaterializedView, "CREATE MATERIALIZED VIEW"
	}
	switch {
	case s.OrReplace:
		return nil, b.unsupported(s, "CREATE OR REPLACE VIEW").WithHint("Drop the view first.")
	case s.Temporary:
		return nil, b.unsupported(s, "a temporary view")
	case s.WithNoData:
		return nil, b.unsupported(s, "WITH NO DATA")
	}
	r, err := b.newRelation(kind, s.Name, s.IfNotExists, s)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return b.nothing(tag)
	}
	b.stored = true
	if s.Materialized {
		if r.Options, err = b.with(s.With, merged(lateOptions, islandOptions), "a materialized view"); err != nil {
			return nil, err
		}
	} else if _, err = b.with(s.With, nil, "a view"); err != nil {
		return nil, err
	}
	if b.late, err = b.lateness(r.Options, s.Name); err != nil {
		return nil, err
	}
	r.Query = s.Query.Text(b.env.Text)
	t, err := b.query(s.Query, false)
	if err != nil {
		return nil, err
	}
	if t, err = b.named(t, s.Columns, s.Name); err != nil {
		return nil, err
	}
	if !s.Materialized {
		for _, c := range t.Columns {
			if !c.Hidden {
				r.Columns = append(r.Columns, catalog.Column{Name: c.Name, Type: c.Type})
			}
		}
		r.AppendOnly = t.AppendOnly
		// What is only wrong in a stored plan is found now, not by who uses the view.
		if _, err := b.checked(t); err != nil {
			return nil, err
		}
		r.ID = b.ids.NextRelation()
		return b.created(r, s.Name, tag)
	}
	if err := b.usesLateness(t, s.Name); err != nil {
		return nil, err
	}
	if t, err = b.optimize(t); err != nil {
		return nil, err
	}
	need := setOf(t, t.visible()...).add(t.Key...)
	root := prune(t, need).narrow(need)
	p := &physical{b: b}
	r.ID = b.ids.NextRelation()
	in, err := p.lower(root.tree)
	if err != nil {
		return nil, err
	}
	p.materialize(in, r.ID)
	if r.Plan, err = p.plan(); err != nil {
		return nil, err
	}
	r.Columns = relationColumns(in.Columns)
	r.PrimaryKey = slices.Clone(in.Key)
	r.AppendOnly = in.AppendOnly
	return b.created(r, s.Name, tag)
}

// checked plans a view's query as it would be stored, to find what is wrong with it; no ids are used.
func (b *binder) checked(t *tree) (*plan.Plan, error) {
	ids := b.ids
	defer func() { b.ids = ids }()
	t, err := b.optimize(t)
	if err != nil {
		return nil, err
	}
	need := setOf(t, t.visible()...).add(t.Key...)
	return b.finish(prune(t, need).narrow(need).tree)
}

// named gives a view's columns the names of its column list, and checks that they differ.
func (b *binder) named(t *tree, names []ast.Ident, at ast.Node) (*tree, error) {
	visible := t.visible()
	if len(visible) == 0 {
		return nil, b.unsupported(at, "a view without columns")
	}
	if len(names) > len(visible) {
		return nil, b.errorf(names[len(visible)], pgerr.SyntaxError, "CREATE VIEW specifies more column names than columns")
	}
	out := *t
	out.Columns = slices.Clone(t.Columns)
	seen := map[string]bool{}
	for i, v := range visible {
		if i < len(names) {
			out.Columns[v].Name = names[i].Name
		}
		name := out.Columns[v].Name
		if seen[name] {
			return nil, b.errorf(at, pgerr.DuplicateColumn, "column \"%s\" specified more than once", name).
				WithHint("Give the columns of the query different names with AS.")
		}
		seen[name] = true
	}
	return &out, nil
}

// usesLateness refuses options for late rows where no window could have any.
func (b *binder) usesLateness(t *tree, at ast.Node) error {
	if b.late.Policy == "" || hasWatermarkWindow(t) {
		return nil
	}
	return b.errorf(at, pgerr.InvalidParameterValue, "late = '%s' has no effect: the query has no window over a column with a watermark", b.late.Policy)
}

func hasWatermarkWindow(t *tree) bool {
	if t.Kind == plan.KindWindow && t.EventTime == t.Window.Time {
		return true
	}
	return slices.ContainsFunc(t.in, hasWatermarkWindow)
}

// createSink is CREATE SINK.
func (b *binder) createSink(s *ast.CreateSink) (Bound, error) {
	const tag = "CREATE SINK"
	switch {
	case s.OrReplace:
		return nil, b.unsupported(s, "CREATE OR REPLACE SINK")
	case len(s.Into.Parts) > 0:
		return nil, b.unsupported(s.Into, "CREATE SINK INTO a table")
	}
	r, err := b.newRelation(catalog.Sink, s.Name, s.IfNotExists, s)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return b.nothing(tag)
	}
	b.stored = true
	if err := b.sinkOptions(r, s); err != nil {
		return nil, err
	}
	if b.late, err = b.lateness(r.Options, s.Name); err != nil {
		return nil, err
	}
	var t *tree
	if s.Query != nil {
		r.Query = s.Query.Text(b.env.Text)
		t, err = b.query(s.Query, false)
	} else {
		var sc *scope
		if sc, err = b.table(&ast.Table{Span: s.From.Span, Name: s.From}); err == nil {
			t = sc.tree
		}
	}
	if err != nil {
		return nil, err
	}
	if t, err = b.named(t, nil, s.Name); err != nil {
		return nil, err
	}
	if err := b.usesLateness(t, s.Name); err != nil {
		return nil, err
	}
	return b.planSink(r, s, t)
}

func (b *binder) sinkOptions(r *catalog.Relation, s *ast.CreateSink) error {
	connector := ""
	for _, o := range s.With {
		if o.Name == "connector" {
			connector = o.Value.Text
		}
	}
	switch connector {
	case "kafka":
	case "checksum":
		return b.checksumOptions(r, s)
	case "":
		return b.errorf(s.Name, pgerr.InvalidParameterValue, "sink \"%s\" has no connector", r.Name).
			WithHint("Add WITH (connector = 'kafka', topic = 'name') for a topic of this node.")
	default:
		return b.errorf(s.Name, pgerr.FeatureNotSupported, "connector '%s' is not supported yet", connector).WithHint("There are: kafka (a topic of this node) and checksum (rows are only counted and summed up, for benchmarks).")
	}
	var err error
	if err := b.cluster(s.With); err != nil {
		return err
	}
	known := merged(sinkOptions, lateOptions, islandOptions, clusterOptions, writeOptions, map[string]option{"connector": oneOf("kafka")})
	if r.Options, err = b.with(s.With, known, "a sink with connector 'kafka'"); err != nil {
		return err
	}
	r.Connector = connector
	if r.Topic = r.Options["topic"]; r.Topic == "" {
		return b.errorf(s.Name, pgerr.InvalidParameterValue, "option \"topic\" is missing")
	}
	if s.Format == nil {
		return b.errorf(s.Name, pgerr.InvalidParameterValue, "sink \"%s\" has no FORMAT", r.Name).
			WithHint("Add FORMAT PLAIN ENCODE JSON, or FORMAT UPSERT ENCODE JSON, at the end.")
	}
	if len(s.Format.Options) > 0 {
		return b.errorf(s.Format.Options[0], pgerr.InvalidParameterValue, "unknown option \"%s\" of ENCODE %s", s.Format.Options[0].Name, s.Format.Encode)
	}
	if s.Format.Encode != "JSON" {
		return b.unsupported(s.Format, "ENCODE "+s.Format.Encode+" of a sink").WithHint("There is JSON.")
	}
	switch s.Format.Format {
	case "PLAIN", "UPSERT":
	default:
		return b.unsupported(s.Format, "FORMAT "+s.Format.Format).WithHint("There are PLAIN and UPSERT.")
	}
	r.Format, r.Encode = strings.ToLower(s.Format.Format), "json"
	return nil
}

// checksumOptions are those of a sink that writes nothing: it counts rows and sums their hashes.
func (b *binder) checksumOptions(r *catalog.Relation, s *ast.CreateSink) error {
	var err error
	known := merged(lateOptions, islandOptions, map[string]option{"connector": oneOf("checksum")})
	if r.Options, err = b.with(s.With, known, "a sink with connector 'checksum'"); err != nil {
		return err
	}
	if s.Format != nil {
		return b.errorf(s.Format, pgerr.InvalidParameterValue, "a sink with connector 'checksum' takes no FORMAT: it writes nothing")
	}
	r.Connector, r.Format = "checksum", "checksum"
	return nil
}

// planSink chooses the record key and makes the plan.
func (b *binder) planSink(r *catalog.Relation, s *ast.CreateSink, t *tree) (Bound, error) {
	var chosen []int
	if text := r.Options["primary_key"]; text != "" {
		for name := range strings.SplitSeq(text, ",") {
			name = strings.TrimSpace(name)
			i := slices.IndexFunc(t.Columns, func(c plan.Column) bool { return c.Name == name && !c.Hidden })
			if i < 0 {
				return nil, b.errorf(s.Name, pgerr.UndefinedColumn, "option \"primary_key\" names column \"%s\", which the query does not have", name)
			}
			chosen = append(chosen, i)
		}
	}
	switch {
	case r.Format == "plain" && !t.AppendOnly:
		return nil, b.errorf(s.Name, pgerr.FeatureNotSupported, "FORMAT PLAIN cannot say that a row is gone or has changed, and the query retracts rows").
			WithHint("Use FORMAT UPSERT; or, for windows, end the query with EMIT ON WINDOW CLOSE, so that each result comes once.")
	case r.Format == "upsert" && len(chosen) > 0 && !t.AppendOnly && !subset(t.Key, chosen):
		names := make([]string, len(t.Key))
		for i, k := range t.Key {
			names[i] = t.Columns[k].Name
		}
		return nil, b.errorf(s.Name, pgerr.InvalidParameterValue, "primary_key does not hold the query's key (%s): rows that differ would overwrite each other", strings.Join(names, ", ")).
			WithHint("Leave primary_key out, or let it have all these columns.")
	}
	t, err := b.optimize(t)
	if err != nil {
		return nil, err
	}
	need := setOf(t, t.visible()...)
	key := chosen
	if r.Format == "upsert" {
		need.add(t.Key...)
		if len(key) == 0 {
			key = t.Key
		}
	}
	visible := t.visible()
	root := prune(t, need).narrow(need)
	p := &physical{b: b}
	r.ID = b.ids.NextRelation()
	if r.Outside() {
		r.Topic = "leat.sink." + strconv.FormatUint(r.ID, 10) + ".changelog" // ids are given once
	}
	in, err := p.lower(root.tree)
	if err != nil {
		return nil, err
	}
	sink := &plan.Sink{Relation: r.ID, Topic: r.Topic, Format: r.Format, Encode: r.Encode, Columns: mapped(visible, root.at), Key: []int{}}
	if k := mapped(key, root.at); k != nil {
		sink.Key = k
	}
	for _, c := range sink.Columns {
		sink.Names = append(sink.Names, in.Columns[c].Name)
	}
	if slices.ContainsFunc(sink.Key, func(k int) bool { return !slices.Contains(sink.Columns, k) }) {
		for _, k := range sink.Key {
			sink.KeyNames = append(sink.KeyNames, in.Columns[k].Name)
		}
	}
	p.sink(in, sink)
	if r.Plan, err = p.plan(); err != nil {
		return nil, err
	}
	for _, c := range sink.Columns {
		r.Columns = append(r.Columns, catalog.Column{Name: in.Columns[c].Name, Type: in.Columns[c].Type})
	}
	r.AppendOnly = in.AppendOnly
	return b.created(r, s.Name, "CREATE SINK")
}
