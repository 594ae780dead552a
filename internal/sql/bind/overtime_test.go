package bind

import (
	"strings"
	"testing"

	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
)

// TestQueriesOverTime binds queries that compute with times. The lines of their plans must hold these parts.
func TestQueriesOverTime(t *testing.T) {
	t.Parallel()
	at, iv := expr.Column(0, column.TTimestamptz, 0), expr.Const(column.TInterval, "01:00:00", 0)
	if _, err := expr.Resolve("+", []*expr.Node{at, iv}, 0); err != nil {
		t.Skip("expr has no arithmetic of times yet")
	}
	const ddl = `CREATE SOURCE searches (id text, url text, at timestamptz, WATERMARK FOR at AS at - INTERVAL '10 seconds') WITH (connector = 'kafka', topic = 'searches') FORMAT PLAIN ENCODE JSON;
		CREATE SOURCE clicks (id text, url text, at timestamptz, WATERMARK FOR at AS at) WITH (connector = 'kafka', topic = 'clicks') FORMAT PLAIN ENCODE JSON;
		CREATE SOURCE bid WITH (connector='nexmark', nexmark.table.type='bid', nexmark.event.num=1000)`
	s := &session{catalog: catalog.Empty()}
	if _, err := s.run(strings.Replace(ddl, "bid WITH", "bid (WATERMARK FOR date_time AS date_time - INTERVAL '4 seconds') WITH", 1)); err != nil {
		t.Fatal(message(ddl, err))
	}
	tests := []struct{ name, sql, want string }{
		{
			"inner", `CREATE MATERIALIZED VIEW j AS SELECT s.id, s.url, c.at FROM searches s JOIN clicks c ON s.id = c.id AND c.at BETWEEN s.at AND s.at + INTERVAL '1 hour'`,
			"Interval join on id = id within at - at in [0s, 1h] ->",
		},
		{
			"in WHERE", `CREATE MATERIALIZED VIEW j AS SELECT s.id FROM searches s, clicks c WHERE s.id = c.id AND c.at >= s.at - INTERVAL '5 minutes' AND c.at <= s.at`,
			"Interval join on id = id within at - at in [-5m, 0s] ->",
		},
		{
			"left", `CREATE MATERIALIZED VIEW lj AS SELECT s.id, s.url, c.at IS NOT NULL AS clicked FROM searches s LEFT JOIN clicks c ON s.id = c.id AND s.url = c.url AND c.at >= s.at AND c.at <= s.at + INTERVAL '1 hour'`,
			"Left interval join on id = id and url = url within at - at in [0s, 1h] ->",
		},
		{
			"a temporal filter", `CREATE MATERIALIZED VIEW recent AS SELECT id FROM searches WHERE at > now() - INTERVAL '1 hour'`,
			"ERROR 0A000: now() and its like are not supported yet in a condition of a stored query",
		},
		{
			"nexmark q17", `CREATE MATERIALIZED VIEW q17 AS SELECT auction, to_char(date_time, 'YYYY-MM-DD') AS day, count(*) AS total_bids, count(*) FILTER (WHERE price < 10000) AS low, max(price), avg(price) FROM bid GROUP BY auction, to_char(date_time, 'YYYY-MM-DD')`,
			"Aggregate count(*), count(*) filter _filter, max(_arg), avg(_arg) by auction, day ->",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(tt.sql, "to_char") && !expr.Exists("to_char") {
				t.Skip("expr has no to_char yet")
			}
			out, err := (&session{catalog: s.catalog}).run(tt.sql)
			if err != nil {
				out = message(tt.sql, err)
			}
			if !strings.Contains(out, tt.want) {
				t.Errorf("got:\n%s\nwant a line with %s", out, tt.want)
			}
		})
	}
}
