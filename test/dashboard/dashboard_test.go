// Package dashboard sees that what a node exports, what docs/operations.md says of it and what dashboards/leat.json shows are the same.
package dashboard

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leat-io/leat/test/nodetest"
)

const root = "../.."

// exported are the names of all metrics that a running node has: those with samples, and those that are registered and wait for the first one.
func exported(t *testing.T) (names map[string]bool, c *nodetest.Conn) {
	t.Helper()
	n := nodetest.Start(t, nodetest.Options{})
	c = n.Connect()
	c.Do(`CREATE SOURCE events (id text, at timestamp, WATERMARK FOR at AS at - INTERVAL '1 minute') WITH (connector = 'kafka', topic = 'events') FORMAT PLAIN ENCODE JSON`,
		`CREATE MATERIALIZED VIEW w AS SELECT window_start, count(*) AS n FROM TUMBLE(events, at, INTERVAL '5 minutes') GROUP BY window_start, window_end`)
	n.Produce(nodetest.Lines("events", `{"id":"a","at":"2024-01-01T00:00:00"}`)...)
	c.Do("FLUSH")
	out := map[string]bool{}
	families, err := n.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		out[f.GetName()] = true
	}
	name := regexp.MustCompile(`fqName: "([^"]+)"`)
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		n.Registry.Describe(descs)
	}()
	for d := range descs {
		out[name.FindStringSubmatch(d.String())[1]] = true
	}
	return out, c
}

// queries are all expressions of a dashboard, wherever they stand.
func queries(v any) (out []string) {
	switch x := v.(type) {
	case map[string]any:
		for key, value := range x {
			if s, ok := value.(string); ok && (key == "expr" || key == "query" || key == "definition") {
				out = append(out, s)
				continue
			}
			out = append(out, queries(value)...)
		}
	case []any:
		for _, value := range x {
			out = append(out, queries(value)...)
		}
	}
	return out
}

func TestTheDashboardShowsWhatIsExported(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join(root, "dashboards", "leat.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard any
	if err := json.Unmarshal(raw, &dashboard); err != nil {
		t.Fatal(err)
	}
	have, _ := exported(t)
	metric := regexp.MustCompile(`\b(?:leat|go|process)_[a-z_]+`)
	shown := map[string]bool{}
	for _, q := range queries(dashboard) {
		for _, name := range metric.FindAllString(q, -1) {
			base := name
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				if stem, ok := strings.CutSuffix(name, suffix); ok && have[stem] {
					base = stem
				}
			}
			if !have[base] {
				t.Errorf("the dashboard shows %s, which no node exports: %s", name, q)
			}
			shown[base] = true
		}
	}
	if len(shown) < 40 {
		t.Errorf("only %d metrics are shown", len(shown))
	}
}

func TestEveryMetricIsDocumented(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile(filepath.Join(root, "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	written := regexp.MustCompile(`\bleat_[a-z_]+`)
	documented := map[string]bool{}
	for _, name := range written.FindAllString(string(docs), -1) {
		documented[name] = true
	}
	have, c := exported(t)
	for name := range have {
		if strings.HasPrefix(name, "leat_") && !documented[name] {
			t.Errorf("%s is exported, and docs/operations.md says nothing of it", name)
		}
	}
	for name := range documented {
		if have[name] {
			continue
		}
		if _, err := c.Run("SELECT * FROM " + name); err != nil { // a system view
			t.Errorf("docs/operations.md speaks of %s, which is neither a metric nor a view: %v", name, err)
		}
	}
}
