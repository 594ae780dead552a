// Command compat runs clients, tools and test suites that others wrote against Leat and, where KAFKA_PEER names a script
// that runs Apache Kafka, against it too, and writes both results into one table: docs/compatibility.md.
//
// What a client gets from Apache Kafka is the measure: a check that fails there as well says nothing about Leat. A suite
// whose needs are missing is named, and fails the run, unless -allow-missing; nothing is passed over silently. The programs
// of clients/ are one list of checks in each client's own words; suite.go has the lines by which they answer.
//
// KAFKA_PEER is run as `start --port 0 --dir DIR` (prints HOST:PORT PID), `stop --dir DIR --kill`, `version`, `classpath`
// (for java -cp) and `tool NAME ARGS...` (Kafka's scripts by their names without kafka- and .sh).
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

func main() {
	only := flag.String("suites", "", "suites to run, with commas between; all if empty")
	write := flag.String("write", "", "write the table to this file; suites that are not run keep their rows")
	leatAddr := flag.String("leat", "", "address of a running node; if empty, one is built and started")
	kafkaAddr := flag.String("kafka", "", "address of a running Apache Kafka; if empty, KAFKA_PEER starts one")
	allowMissing := flag.Bool("allow-missing", false, "do not fail for a suite whose needs are missing")
	jobs := flag.Int("jobs", 3, "how many suites to run at once; most of them wait most of the time")
	verbose := flag.Bool("v", false, "show what the clients print")
	flag.Parse()

	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	e, err := newEnv(*verbose)
	if err != nil {
		fmt.Fprintln(os.Stderr, "compat:", err)
		os.Exit(1)
	}
	e.jobs, e.allowMissing = *jobs, *allowMissing
	ok, err := run(ctx, e, *only, *write, *leatAddr, *kafkaAddr)
	_ = os.RemoveAll(e.work)
	if err != nil {
		fmt.Fprintln(os.Stderr, "compat:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func newEnv(verbose bool) (*env, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return nil, fmt.Errorf("find the module's folder: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	e := &env{root: strings.TrimSpace(string(out)), cache: filepath.Join(cache, "leat-compat"), log: io.Discard}
	if e.peer = os.Getenv("KAFKA_PEER"); e.peer != "" {
		if e.peer, err = filepath.Abs(e.peer); err != nil {
			return nil, err
		}
	}
	if verbose {
		e.log = os.Stderr
	}
	if err := os.MkdirAll(e.cache, 0o755); err != nil {
		return nil, err
	}
	e.work, err = os.MkdirTemp("", "leat-compat-")
	return e, err
}

func run(ctx context.Context, e *env, only, write, leatAddr, kafkaAddr string) (bool, error) {
	chosen, err := choose(only)
	if err != nil {
		return false, err
	}
	leat := &broker{name: "Leat", addr: leatAddr, stop: func() {}}
	if leatAddr == "" {
		if leat, err = startLeat(ctx, e); err != nil {
			return false, err
		}
	}
	defer leat.stop()
	brokers := []*broker{leat}
	switch {
	case kafkaAddr != "":
		brokers = append(brokers, &broker{name: "Apache Kafka", addr: kafkaAddr, stop: func() {}})
	case e.peer != "":
		kafka, err := startKafka(ctx, e)
		if err != nil {
			return false, err
		}
		defer kafka.stop()
		brokers = append(brokers, kafka)
	default:
		fmt.Println("KAFKA_PEER is not set: Leat alone, without Kafka's tools and Apache Kafka's own result")
	}

	rows, good := runSuites(ctx, e, chosen, brokers)
	if ctx.Err() != nil {
		return false, errors.New("interrupted")
	}
	if write != "" {
		if err := writeReport(write, rows); err != nil {
			return false, err
		}
	}
	return good, nil
}

// runSuites runs some suites at once, those that may take longest first, each against one broker after the other.
func runSuites(ctx context.Context, e *env, chosen []suite, brokers []*broker) (rows []row, good bool) {
	rows, good = make([]row, len(chosen)), true
	order := make([]int, len(chosen))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(chosen[b].timeout, chosen[a].timeout) })
	var running sync.WaitGroup
	var mu sync.Mutex // of good, and of what is printed
	slots := make(chan struct{}, max(e.jobs, 1))
	for _, i := range order {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			r := runSuite(ctx, e, chosen[i], brokers)
			rows[i] = r
			mu.Lock()
			defer mu.Unlock()
			good = good && (r.missing == "" || e.allowMissing)
			if r.missing != "" {
				fmt.Printf("%-16s NOT RUN: %s\n", r.suite.name, r.missing)
			}
			for _, run := range r.runs {
				printRun(os.Stdout, r.suite, run)
			}
			if len(r.runs) > 0 {
				for _, f := range failures(r.runs[0].results) {
					good = good && known(r.suite.name, f.name) != ""
				}
			}
		})
	}
	running.Wait()
	return rows, good
}

func runSuite(ctx context.Context, e *env, s suite, brokers []*broker) row {
	r := row{suite: s}
	if err := s.ready(ctx, e); err != nil {
		r.missing = oneLine(err.Error())
		return r
	}
	for _, b := range brokers {
		from := time.Now()
		bounded, cancel := context.WithTimeout(ctx, s.timeout)
		results := s.run(bounded, e, b)
		cancel()
		if ctx.Err() != nil {
			return r
		}
		r.runs = append(r.runs, runOn{b.name, results, time.Since(from)})
	}
	return r
}

func choose(only string) ([]suite, error) {
	all := suites()
	if only == "" {
		return all, nil
	}
	var out []suite
	for name := range strings.SplitSeq(only, ",") {
		found := false
		for _, s := range all {
			if s.name == name {
				out, found = append(out, s), true
			}
		}
		if !found {
			return nil, fmt.Errorf("no suite %q: there are %s", name, names(all))
		}
	}
	return out, nil
}

func names(all []suite) string {
	var out []string
	for _, s := range all {
		out = append(out, s.name)
	}
	return strings.Join(out, ", ")
}

func nothing(context.Context, *env) error { return nil }

// needs is a ready that wants commands on the path.
func needs(commands ...string) func(context.Context, *env) error {
	return func(context.Context, *env) error {
		for _, c := range commands {
			if _, err := exec.LookPath(c); err != nil {
				return fmt.Errorf("%s is not installed", c)
			}
		}
		return nil
	}
}

// needsPeer is a ready that wants the script that runs Apache Kafka, and commands on the path.
func needsPeer(commands ...string) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error {
		if e.peer == "" {
			return errors.New("KAFKA_PEER does not name the script that runs Apache Kafka and its tools")
		}
		return needs(commands...)(ctx, e)
	}
}

// suites is everything there is, in the order of the table.
func suites() []suite {
	return []suite{
		{name: "kafka-tools", title: "Apache Kafka's own tools", timeout: 12 * time.Minute, ready: needsPeer("java"), run: kafkaTools},
		{name: "java", title: "Java client: transactional producer", timeout: 3 * time.Minute, ready: needsPeer("java", "javac"), run: javaProgram("Transactions.java")},
		{name: "streams", title: "Kafka Streams: exactly-once word count, killed and resumed", timeout: 5 * time.Minute, ready: needsPeer("java", "javac"), run: streams},
		{name: "kcat", title: "kcat (librdkafka)", short: true, timeout: 2 * time.Minute, ready: needs("kcat"), run: kcat},
		{name: "confluent-kafka", title: "confluent-kafka, PyPI (librdkafka)", timeout: 5 * time.Minute, ready: pythonReady, run: python("confluent.py")},
		{name: "aiokafka", title: "aiokafka, PyPI", timeout: 5 * time.Minute, ready: pythonReady, run: python("aio.py")},
		{name: "kafkajs", title: "kafkajs, npm", timeout: 5 * time.Minute, ready: nodeReady, run: node("kafkajs.mjs")},
		{name: "platformatic", title: "@platformatic/kafka, npm", timeout: 5 * time.Minute, ready: nodeReady, run: node("platformatic.mjs")},
		{name: "sarama", title: "Sarama", short: true, timeout: 3 * time.Minute, ready: nothing, run: sarama},
		{name: "kgo", title: "franz-go's own tests (`pkg/kgo`)", short: true, timeout: 15 * time.Minute, ready: nothing, run: kgoTests},
		{name: "confluent-go", title: "confluent-kafka-go's own integration tests (librdkafka)", timeout: 25 * time.Minute, ready: needs("gcc"), run: confluentGoTests},
	}
}
