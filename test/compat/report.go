package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// row is a suite's line of the table.
type row struct {
	suite   suite
	missing string // why it could not run at all
	runs    []runOn
}

// runOn is a suite's run against one broker.
type runOn struct {
	broker  string
	results []result
	took    time.Duration
}

func count(rs []result, o outcome) int {
	n := 0
	for _, r := range rs {
		if r.outcome == o {
			n++
		}
	}
	return n
}

func failures(rs []result) []result { return having(rs, failed) }

func having(rs []result, o outcome) []result {
	var out []result
	for _, r := range rs {
		if r.outcome == o {
			out = append(out, r)
		}
	}
	return out
}

func printRun(w io.Writer, s suite, r runOn) {
	fmt.Fprintf(w, "%-16s %-18s %3d passed, %d failed, %d not applicable (%.0f s)\n", s.name, r.broker, count(r.results, passed),
		count(r.results, failed), count(r.results, absent), r.took.Seconds())
	for _, f := range failures(r.results) {
		fmt.Fprintf(w, "    FAIL %s: %s\n", f.name, f.why)
	}
}

//go:embed known.txt
var knownText string

// known says why a check of a suite fails against Leat, if that is known and written down in known.txt.
func known(suite, check string) string {
	for line := range strings.Lines(knownText) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		if f := strings.SplitN(line, "\t", 3); len(f) == 3 && f[0] == suite && f[1] == check {
			return f[2]
		}
	}
	return ""
}

// Sections lie between these lines of the page, by suite, so that a run of some suites keeps the others.
func begin(name string) string { return "<!-- suite " + name + " -->" }

func end(name string) string { return "<!-- end " + name + " -->" }

// writeReport brings the rows into the page: the table's lines and, below it, each suite's failures by name.
func writeReport(path string, rows []row) error {
	old, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	lines, details := map[string]string{}, map[string]string{}
	for _, s := range suites() {
		lines[s.name], details[s.name] = kept(old, s.name)
	}
	for _, r := range rows {
		lines[r.suite.name], details[r.suite.name] = tableLine(r), detail(r)
	}
	var out bytes.Buffer
	out.WriteString(`# Compatibility

Written by ` + "`make compat`" + ` ([test/compat](../test/compat)): clients, tools and test suites that others wrote, against Leat and against Apache Kafka, the same checks on the same machine. A check that
fails on both says nothing about Leat. "Not applicable" is what the client itself cannot do, or what a suite skips by itself. CI runs the suites marked * against Leat.

| suite | Leat: passed | failed | not applicable | Apache Kafka: passed | failed | not applicable |
|---|---|---|---|---|---|---|
`)
	for _, s := range suites() {
		out.WriteString(lines[s.name])
	}
	for _, s := range suites() {
		out.WriteString(details[s.name])
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}

func tableLine(r row) string {
	title := r.suite.title
	if r.suite.short {
		title += " *"
	}
	cells := []string{"[" + title + "](#" + r.suite.name + ")"}
	for i := range 2 {
		if i >= len(r.runs) {
			cells = append(cells, "not run", "", "")
			continue
		}
		rs := r.runs[i].results
		cells = append(cells, fmt.Sprint(count(rs, passed)), fmt.Sprint(count(rs, failed)), fmt.Sprint(count(rs, absent)))
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

func detail(r row) string {
	var out strings.Builder
	fmt.Fprintf(&out, "\n%s\n\n## %s\n\n%s.\n", begin(r.suite.name), r.suite.name, r.suite.title)
	if r.missing != "" {
		fmt.Fprintf(&out, "\nNot run: %s.\n", r.missing)
	}
	if len(r.runs) > 0 {
		var ok []string
		for _, p := range having(r.runs[0].results, passed) {
			ok = append(ok, p.name)
		}
		if len(ok) > 0 && len(ok) <= 80 {
			fmt.Fprintf(&out, "\nPassed on %s: %s.\n", r.runs[0].broker, strings.Join(ok, "; "))
		}
	}
	for _, run := range r.runs {
		if fs := failures(run.results); len(fs) > 0 {
			fmt.Fprintf(&out, "\nFailed on %s:\n\n", run.broker)
			for _, f := range fs {
				why := f.why
				if k := known(r.suite.name, f.name); k != "" && run.broker == "Leat" {
					why = k
				}
				fmt.Fprintf(&out, "- %s: %s\n", f.name, why)
			}
		}
	}
	if len(r.runs) > 0 {
		if fs := having(r.runs[0].results, absent); len(fs) > 0 {
			fmt.Fprintf(&out, "\nNot applicable on %s:\n\n", r.runs[0].broker)
			for _, f := range fs {
				fmt.Fprintf(&out, "- %s: %s\n", f.name, f.why)
			}
		}
	}
	fmt.Fprintf(&out, "%s\n", end(r.suite.name))
	return out.String()
}

// kept is what the page has of a suite: its line of the table and its section.
func kept(page []byte, name string) (line, section string) {
	for l := range strings.Lines(string(page)) {
		if strings.HasPrefix(l, "| [") && strings.Contains(l, "](#"+name+") |") {
			line = l
		}
	}
	if from := bytes.Index(page, []byte(begin(name))); from >= 0 {
		if to := bytes.Index(page, []byte(end(name))); to > from {
			section = "\n" + string(page[from:to]) + end(name) + "\n"
		}
	}
	return line, section
}
