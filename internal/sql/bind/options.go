package bind

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
	"github.com/leat-io/leat/internal/sql/plan"
)

// option says what the value of an option may be; "" if it is right, else what it should be.
type option func(value string) string

func anyText(v string) string {
	if v == "" {
		return "must not be empty"
	}
	return ""
}

func oneOf(words ...string) option {
	return func(v string) string {
		if slices.Contains(words, v) {
			return ""
		}
		return "must be one of " + strings.Join(words, ", ")
	}
}

func integer(lo, hi int64) option {
	return func(v string) string {
		if n, err := strconv.ParseInt(v, 10, 64); err != nil || n < lo || n > hi {
			return "must be an integer from " + strconv.FormatInt(lo, 10) + " to " + strconv.FormatInt(hi, 10)
		}
		return ""
	}
}

// topicName: what Kafka allows.
func topicName(v string) string {
	ok := v != "" && v != "." && v != ".." && len(v) <= 249
	for _, c := range v {
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-')
	}
	if !ok {
		return "must be a topic name: up to 249 letters, digits, '.', '_' and '-'"
	}
	return ""
}

func interval(v string) string {
	if us, ok := parseInterval(v); !ok || us < 0 {
		return "must be an interval that is not negative, such as '1 hour'"
	}
	return ""
}

// parseInterval reads an interval without months as microseconds.
func parseInterval(v string) (int64, bool) {
	n, err := expr.CastTo(expr.Literal(v, 0), column.TInterval, expr.Explicit)
	if err != nil {
		return 0, false
	}
	iv, err := constInterval(n)
	if err != nil || iv.Months != 0 {
		return 0, false
	}
	return micros(iv)
}

var islandOptions = map[string]option{"island": oneOf("own", "shared")}

// lateOptions are those of views and sinks over windows.
var lateOptions = map[string]option{
	"late": oneOf("count", "correct", "topic"), "allowed_lateness": interval, "late_topic": topicName,
}

// maxAheadOption bounds how far an event time may be ahead of the time at which its record was appended.
const maxAheadOption = "watermark.max.ahead"

// sourceOptions by connector, beside "connector" itself. Nexmark's are those of its generator.
var sourceOptions = map[string]map[string]option{
	"kafka": {"topic": topicName, "scan.startup.mode": oneOf("earliest", "latest"), maxAheadOption: interval},
	"nexmark": {
		"nexmark.table.type": oneOf("bid", "auction", "person"),
		"nexmark.event.num":  integer(0, 1<<62), "nexmark.event.rate": integer(1, 1_000_000_000),
		"nexmark.seed": integer(0, 1<<62), "nexmark.base.time": integer(0, 1<<52), "nexmark.out.of.order": integer(1, 1_000_000),
	},
}

// clusterOptions are those of a source or sink over a topic of a Kafka cluster, writeOptions those of a sink on top.
var (
	clusterOptions = map[string]option{catalog.ServersOption: servers, catalog.ClientIDOption: anyText}
	writeOptions   = map[string]option{catalog.CompressionOption: oneOf("none", "gzip", "snappy", "lz4", "zstd")}
)

// servers is a list of host:port.
func servers(v string) string {
	for s := range strings.SplitSeq(v, ",") {
		host, port, err := net.SplitHostPort(strings.TrimSpace(s))
		n, e := strconv.ParseUint(port, 10, 16)
		if err != nil || host == "" || e != nil || n == 0 {
			return "must be host:port, or several of them with commas between"
		}
	}
	return ""
}

// cluster checks what options of a cluster need or forbid, before they are looked at one by one.
func (b *binder) cluster(list []ast.Option) error {
	inside := !slices.ContainsFunc(list, func(o ast.Option) bool { return strings.EqualFold(o.Name, catalog.ServersOption) })
	for _, o := range list {
		rest, ok := strings.CutPrefix(strings.ToLower(o.Name), "properties.")
		if !ok {
			continue
		}
		for _, prefix := range []string{"security.", "sasl.", "ssl."} {
			if strings.HasPrefix(rest, prefix) {
				return b.unsupported(o, "option \""+o.Name+"\" (TLS and SASL to a Kafka cluster)")
			}
		}
		if inside {
			return b.errorf(o, pgerr.InvalidParameterValue, "option \"%s\" is for a topic of a Kafka cluster, and \"%s\" is missing", o.Name, catalog.ServersOption).
				WithHint("Add %s = 'host:port'; without it the topic is one of this node.", catalog.ServersOption)
		}
	}
	return nil
}

var sinkOptions = map[string]option{"topic": topicName, "primary_key": anyText}

var tableOptions = map[string]option{"topic": topicName, "partitions": integer(1, 10_000)}

func merged(sets ...map[string]option) map[string]option {
	out := map[string]option{}
	for _, s := range sets {
		for k, v := range s {
			out[k] = v
		}
	}
	return out
}

// with checks the options of a statement and gives them by name.
func (b *binder) with(list []ast.Option, known map[string]option, what string) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	out := map[string]string{}
	for _, o := range list {
		name := strings.ToLower(o.Name)
		check, ok := known[name]
		if !ok {
			names := make([]string, 0, len(known))
			for k := range known {
				names = append(names, k)
			}
			slices.Sort(names)
			hint := "There are none."
			if len(names) > 0 {
				hint = "There are: " + strings.Join(names, ", ") + "."
			}
			return nil, b.errorf(o, pgerr.InvalidParameterValue, "unknown option \"%s\" of %s", o.Name, what).WithHint("%s", hint)
		}
		if _, twice := out[name]; twice {
			return nil, b.errorf(o, pgerr.SyntaxError, "option \"%s\" is given twice", o.Name)
		}
		v := o.Value.Text
		if o.Value.Kind == ast.OptionNone {
			v = "true"
		}
		if wrong := check(v); wrong != "" {
			return nil, b.errorf(o, pgerr.InvalidParameterValue, "option \"%s\" is '%s': it %s", o.Name, v, wrong)
		}
		out[name] = v
	}
	return out, nil
}

// lateness reads the options for late rows.
func (b *binder) lateness(options map[string]string, at ast.Node) (plan.Late, error) {
	l := plan.Late{Policy: options["late"], Topic: options["late_topic"]}
	allowed, given := options["allowed_lateness"]
	if given {
		l.Allowed, _ = parseInterval(allowed)
	}
	switch {
	case l.Policy == "" && (given || l.Topic != ""):
		return l, b.errorf(at, pgerr.InvalidParameterValue, "allowed_lateness and late_topic need late = 'correct' and late = 'topic'")
	case l.Policy == "correct" && l.Allowed <= 0:
		return l, b.errorf(at, pgerr.InvalidParameterValue, "late = 'correct' needs allowed_lateness, such as allowed_lateness = '1 hour'")
	case l.Policy == "topic" && l.Topic == "":
		return l, b.errorf(at, pgerr.InvalidParameterValue, "late = 'topic' needs late_topic = 'name'")
	case l.Policy != "correct" && given:
		return l, b.errorf(at, pgerr.InvalidParameterValue, "allowed_lateness goes with late = 'correct'")
	case l.Policy != "topic" && l.Topic != "":
		return l, b.errorf(at, pgerr.InvalidParameterValue, "late_topic goes with late = 'topic'")
	}
	if l.Policy == "count" {
		l.Policy = ""
	}
	return l, nil
}
