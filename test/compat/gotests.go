package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// kgoShort are the tests of kgo that CI runs: of those that talk to a broker, the ones that take seconds. Each line is a process: the two chains of
// groups wait most of the time, and within a process for each other.
var kgoShort = []string{
	"^TestTxnEtl$",
	"^TestGroupETL$",
	"^(TestPing|TestIssue1034|TestIssue325|TestIssue337|TestIssue434|TestIssue489|TestIssue523|TestIssue648|TestIssue810|TestIssue865|" +
		"TestConsumeTopicRetrieval.*|TestDirectPartitionPurge|TestAddRemovePartitions|TestPauseIssue.*|TestIssueFetchLargerThanBrokerMaxReadBytes|TestPooling|" +
		"TestGroupSimple|TestClient_Produce.*|TestIssue769)$",
}

// kgoTests runs franz-go's own tests: all of them, or those of kgoShort with fewer records.
func kgoTests(ctx context.Context, e *env, b *broker) []result {
	bin := filepath.Join(e.work, "kgo.test")
	if _, err := os.Stat(bin); err != nil {
		if _, err := e.output(ctx, e.root, nil, "go", "test", "-c", "-o", bin, "github.com/twmb/franz-go/pkg/kgo"); err != nil {
			return []result{check("go test -c", err)}
		}
	}
	// The tests look for files beside their sources; the module cache is read-only and they write nothing.
	dir, err := e.output(ctx, e.root, nil, "go", "list", "-f", "{{.Dir}}", "github.com/twmb/franz-go/pkg/kgo")
	if err != nil {
		return []result{check("go list", err)}
	}
	runs, records, timeout := []string{"^Test"}, "50000", "14m"
	if e.short {
		runs, records, timeout = kgoShort, "5000", "2m"
	}
	results := make([][]result, len(runs))
	var running sync.WaitGroup
	for i, run := range runs {
		running.Go(func() {
			out, err := e.output(ctx, strings.TrimSpace(dir), []string{
				"KGO_SEEDS=" + b.addr, "KGO_TEST_RF=1", "KGO_TEST_RECORDS=" + records, "KGO_LOG_LEVEL=none",
			}, bin, "-test.v", "-test.timeout="+timeout, "-test.run="+run)
			results[i] = goResults(out, err, "")
		})
	}
	running.Wait()
	all := slices.Concat(results...)
	slices.SortStableFunc(all, func(a, b result) int { return strings.Compare(a.name, b.name) }) // they run side by side, and end in any order
	return all
}

var (
	goLine = regexp.MustCompile(`^( *)--- (PASS|FAIL|SKIP): (\S+) \(`)
	atLine = regexp.MustCompile(`^\t\t(\S+) \(\S+\)$`) // behind the panic of a run whose time is up
)

// hung begins the name of the result of a test that did not end.
const hung = "hung: "

// goResults reads what `go test -v` prints. A test with subtests counts as one, but for the one named suite, whose subtests
// count each; a message printed in a test that failed or was skipped is its why. A run whose time was up has one more result, for what it was at; what would
// have come behind it is missing.
func goResults(out string, err error, suite string) []result {
	var results []result
	said := map[string][]string{}
	current, stuck := "", ""
	lines := bufio.NewScanner(strings.NewReader(out))
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		l := lines.Text()
		if f := strings.Fields(l); len(f) == 3 && f[0] == "===" { // RUN, PAUSE, CONT or NAME
			current = f[2]
			continue
		}
		m := goLine.FindStringSubmatch(l)
		if m == nil {
			if r := atLine.FindStringSubmatch(l); r != nil {
				stuck = r[1] // the last one is the innermost
			}
			if strings.HasPrefix(l, "    ") { // the last lines of a test that fails say why
				said[current] = append(said[current], strings.TrimSpace(l))
				said[current] = said[current][max(0, len(said[current])-3):]
			}
			continue
		}
		current = m[3]
		parent, rest, sub := strings.Cut(m[3], "/")
		inSuite := sub && parent == suite && !strings.Contains(rest, "/")
		if m[3] == suite || sub && !inSuite {
			continue
		}
		r := result{name: m[3]}
		if inSuite {
			r.name = rest
		}
		switch m[2] {
		case "FAIL":
			r.outcome = failed
		case "SKIP":
			r.outcome = absent
		}
		results = append(results, r)
	}
	for i, r := range results {
		if r.outcome != passed {
			results[i].why = oneLine(strings.Join(append(said[r.name], said[suite+"/"+r.name]...), "; "))
		}
	}
	if stuck != "" && err != nil {
		return append(results, result{name: hung + strings.TrimPrefix(stuck, suite+"/"), outcome: failed, why: oneLine(strings.Join(said[stuck], "; "))})
	}
	if err != nil && len(failures(results)) == 0 {
		results = append(results, check("the run as a whole", err))
	}
	return results
}

// confluentGoVersion is the release of confluent-kafka-go whose tests run.
const confluentGoVersion = "v2.11.1"

// confluentGoTests runs the integration tests of confluent-kafka-go, which link the librdkafka that it brings.
func confluentGoTests(ctx context.Context, e *env, b *broker) []result {
	const module = "github.com/confluentinc/confluent-kafka-go/v2"
	src := filepath.Join(e.cache, "confluent-kafka-go-"+confluentGoVersion)
	bin := filepath.Join(src, "kafka.test")
	if _, err := os.Stat(bin); err != nil {
		// Its tests are of its own module, whose go.mod must be the main one: they are built in a copy of it.
		out, err := e.output(ctx, e.work, []string{"GOFLAGS=-mod=mod"}, "go", "mod", "download", "-json", module+"@"+confluentGoVersion)
		if err != nil {
			return []result{check("fetch the module", err)}
		}
		var m struct{ Dir string }
		if err := json.Unmarshal([]byte(out), &m); err != nil {
			return []result{check("fetch the module", err)}
		}
		for _, c := range [][]string{{"rm", "-rf", src}, {"cp", "-r", m.Dir, src}, {"chmod", "-R", "u+w", src}} {
			if _, err := e.output(ctx, e.work, nil, c[0], c[1:]...); err != nil {
				return []result{check("copy the module", err)}
			}
		}
		if _, err := e.output(ctx, src, []string{"CGO_ENABLED=1", "GOFLAGS=-mod=mod"}, "go", "test", "-c", "-o", bin, "./kafka"); err != nil {
			return []result{check("go test -c", err)}
		}
	}
	conf := fmt.Sprintf(`{"Brokers": %q, "BrokersSasl": %q, "TopicName": %q, "GroupID": %q, "PerfMsgCount": 2000, "PerfMsgSize": 100, "Config": ["api.version.request=true"]}`,
		b.addr, b.addr, unique("test"), unique("group"))
	if err := os.WriteFile(filepath.Join(src, "kafka", "testconf.json"), []byte(conf), 0o644); err != nil {
		return []result{check("testconf.json", err)}
	}
	// Those that talk to a broker; the groups with either protocol. Two that run within a second of each other want the same topics.
	var results []result
	for _, run := range []struct{ test, protocol string }{
		{"TestIntegration", "classic"},
		{"TestTransactionalSendOffsets", ""},
		{"TestIntegration", "consumer"},
		{"TestTransactionalProducer", ""},
	} {
		var extra []string
		if run.protocol != "" {
			extra = []string{"TEST_CONSUMER_GROUP_PROTOCOL=" + run.protocol}
		}
		tests := func(only ...string) []result {
			args := append([]string{"-test.v", "-test.timeout=6m", "-test.run=^" + run.test + "$"}, only...)
			out, err := e.output(ctx, filepath.Join(src, "kafka"), extra, bin, args...)
			return goResults(out, err, "TestIntegration")
		}
		first := tests()
		if n := len(first); n > 0 && strings.HasPrefix(first[n-1].name, hung) {
			first = tests() // for the sake of those behind it; see below
		}
		for _, r := range first {
			// Some race with themselves, as librdkafka does when it learns of a topic while messages for it are queued (its issue 2033).
			if r.outcome == failed && run.test == "TestIntegration" {
				if again := tests("-testify.m=^" + r.name + "$"); len(again) == 1 && again[0].outcome == passed {
					r = result{name: r.name + " (at the second try)"}
				}
			}
			if run.protocol != "" {
				r.name += ", " + run.protocol
			}
			results = append(results, r)
		}
	}
	return results
}
