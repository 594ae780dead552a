package bind

import (
	"strings"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
)

// aggregateCall is one aggregate over the rows of a query level.
type aggregateCall struct {
	*expr.Aggregate
	filter *expr.Node // nil: all rows
}

// aggregateCalls are the calls of one query level; equal ones are one.
type aggregateCalls struct {
	list []aggregateCall
	// at is the first call, for messages.
	at ast.Node
}

// What PostgreSQL has and Leat does not have yet, so that a message can say so rather than that it does not exist.
var (
	laterAggregates = words("array_agg string_agg json_agg jsonb_agg json_object_agg jsonb_object_agg stddev stddev_pop stddev_samp variance var_pop var_samp " +
		"corr covar_pop covar_samp regr_slope regr_intercept regr_r2 regr_count percentile_cont percentile_disc mode bit_and bit_or bit_xor any_value " +
		"approx_count_distinct first_value last_value xmlagg range_agg")
	laterWindowFunctions = words("row_number rank dense_rank percent_rank cume_dist ntile lag lead nth_value")
	laterSetFunctions    = words("unnest generate_series regexp_matches regexp_split_to_table string_to_table jsonb_array_elements jsonb_array_elements_text " +
		"jsonb_each jsonb_each_text jsonb_object_keys json_array_elements generate_subscripts")
)

// clockCasts are the names of what is now() as another type.
var clockCasts = map[string]column.Type{
	"current_timestamp": column.TTimestamptz, "current_date": column.TDate, "localtimestamp": column.TTimestamp, "localtime": column.TTime,
}

func words(list string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		m[w] = true
	}
	return m
}

// call binds a function or an aggregate.
func (b *binder) call(p place, e *ast.FuncCall) (*expr.Node, error) {
	name := e.Name.Last()
	if s := e.Name.Schema(); s != "" && s != "pg_catalog" {
		return nil, b.errorf(e, pgerr.UndefinedFunction, "function %s.%s does not exist", s, name)
	}
	switch {
	case e.Over != nil:
		return nil, b.unsupported(e, "OVER (window functions)")
	case e.WithinGroup:
		return nil, b.unsupported(e, "WITHIN GROUP")
	case laterAggregates[name] && !expr.IsAggregate(name) && !expr.Exists(name):
		return nil, b.unsupported(e, "aggregate function "+name)
	case laterWindowFunctions[name]:
		return nil, b.errorf(e, pgerr.WindowingError, "window function %s requires an OVER clause", name)
	case laterSetFunctions[name] && !expr.Exists(name):
		return nil, b.unsupported(e, "set-returning function "+name)
	case name == "grouping":
		return nil, b.unsupported(e, "GROUPING")
	}
	if expr.IsAggregate(name) {
		return b.aggregateCall(p, e, name)
	}
	for what, there := range map[string]bool{"DISTINCT": e.Distinct, "ORDER BY": len(e.OrderBy) > 0, "FILTER": e.Filter != nil} {
		if there {
			return nil, b.errorf(e, pgerr.WrongObjectType, "%s specified, but %s is not an aggregate function", what, name)
		}
	}
	if e.Star {
		return nil, b.errorf(e, pgerr.UndefinedFunction, "function %s() does not exist", name)
	}
	args, err := b.arguments(p, e)
	if err != nil {
		return nil, err
	}
	if len(args) == 0 && !expr.Exists(name) {
		if v := b.env.Functions[name]; v != nil {
			if b.stored {
				return nil, b.unsupported(e, "function "+name+" in a stored query, where there is no session,")
			}
			own := *v
			own.Pos = b.pos(e)
			return &own, nil
		}
	}
	if name == "current_setting" && b.env.Setting != nil {
		return b.currentSetting(e, args)
	}
	if t, ok := clockCasts[name]; ok && e.Syntax == ast.BareCall {
		if len(args) > 0 {
			return nil, b.unsupported(e, strings.ToUpper(name)+" with a precision")
		}
		now, err := expr.Resolve("now", nil, b.pos(e))
		if err != nil {
			return nil, err
		}
		return expr.CastTo(now, t, expr.Explicit)
	}
	return expr.Resolve(name, args, b.pos(e))
}

// currentSetting is the value that a parameter of the session has while the statement is bound, which is each time it runs.
func (b *binder) currentSetting(e *ast.FuncCall, args []*expr.Node) (*expr.Node, error) {
	if b.stored {
		return nil, b.unsupported(e, "function current_setting in a stored query, where there is no session,")
	}
	if len(args) != 1 && len(args) != 2 {
		return nil, b.errorf(e, pgerr.UndefinedFunction, "function current_setting with %d arguments does not exist", len(args))
	}
	for _, a := range args {
		if a.Op != expr.OpConst {
			return nil, b.unsupported(e, "current_setting of a name that is not a constant")
		}
	}
	if args[0].Text == nil {
		return expr.Null(column.TText, b.pos(e)), nil
	}
	name := *args[0].Text
	if v, ok := b.env.Setting(name); ok {
		return expr.Const(column.TText, v, b.pos(e)), nil
	}
	if len(args) == 2 && args[1].Text != nil && strings.HasPrefix(strings.ToLower(*args[1].Text), "t") {
		return expr.Null(column.TText, b.pos(e)), nil
	}
	return nil, b.errorf(e, pgerr.UndefinedObject, "unrecognized configuration parameter \"%s\"", name)
}

func (b *binder) arguments(p place, e *ast.FuncCall) ([]*expr.Node, error) {
	var args []*expr.Node
	for _, a := range e.Args {
		if a.Name.Given() {
			return nil, b.unsupported(a, "a named argument")
		}
		if a.Variadic {
			return nil, b.unsupported(a, "VARIADIC")
		}
		n, err := b.expr(p, a.Value)
		if err != nil {
			return nil, err
		}
		args = append(args, n)
	}
	return args, nil
}

func (b *binder) aggregateCall(p place, e *ast.FuncCall, name string) (*expr.Node, error) {
	switch {
	case p.within:
		return nil, b.errorf(e, pgerr.GroupingError, "aggregate function calls cannot be nested")
	case p.calls == nil:
		return nil, b.errorf(e, pgerr.GroupingError, "aggregate functions are not allowed in %s", p.clause)
	case e.Distinct && name != "min" && name != "max" && name != "bool_and" && name != "bool_or" && name != "every":
		// DISTINCT changes nothing for the others.
		return nil, b.unsupported(e, "DISTINCT in an aggregate").
			WithHint("Use SELECT DISTINCT in a sub-query in FROM and aggregate over that.")
	case len(e.OrderBy) > 0:
		return nil, b.unsupported(e, "ORDER BY in an aggregate")
	case e.Star && name != "count":
		return nil, b.errorf(e, pgerr.UndefinedFunction, "function %s() does not exist", name)
	case !e.Star && len(e.Args) == 0 && name == "count":
		return nil, b.errorf(e, pgerr.WrongObjectType, "count(*) must be used to call a parameterless aggregate function")
	}
	inner := place{scope: p.scope, clause: p.clause, calls: p.calls, within: true}
	args, err := b.arguments(inner, e)
	if err != nil {
		return nil, err
	}
	agg, err := expr.ResolveAggregate(name, args, b.pos(e))
	if err != nil {
		return nil, err
	}
	call := aggregateCall{Aggregate: agg}
	if e.Filter != nil {
		inner.clause = "FILTER"
		if call.filter, err = b.condition(inner, e.Filter); err != nil {
			return nil, err
		}
	}
	return p.calls.add(call, e, b.pos(e)), nil
}

// add returns the node that stands for the call.
func (c *aggregateCalls) add(call aggregateCall, at ast.Node, pos int) *expr.Node {
	if c.at == nil {
		c.at = at
	}
	i := 0
	for ; i < len(c.list); i++ {
		if o := c.list[i]; o.Func == call.Func && sameExpr(o.filter, call.filter) && sameExprs(o.Args, call.Args) {
			break
		}
	}
	if i == len(c.list) {
		c.list = append(c.list, call)
	}
	return &expr.Node{Op: opAggregate, Index: i, Type: call.Result, Pos: pos}
}
