package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// outcome is what became of one check.
type outcome int

const (
	passed outcome = iota
	failed
	absent // the client itself has no such feature, or the check does not apply
)

// result is one check of a suite against one broker.
type result struct {
	name    string
	outcome outcome
	why     string // of a failure or an absence
}

// broker is what a suite runs against.
type broker struct {
	name string // as it stands in the table
	addr string
	data string // folder that holds the partitions' folders, for tools that read segment files
	stop func()
}

// suite is a body of checks that others wrote, or that drive a client that others wrote.
type suite struct {
	name    string // as -suites takes it
	title   string // as it stands in the table
	short   bool   // part of the CI run: needs nothing but Go and kcat
	timeout time.Duration
	// ready fetches what the suite needs; its error says what is missing and how to get it.
	ready func(context.Context, *env) error
	run   func(context.Context, *env, *broker) []result
}

// env is what all suites of a run share.
type env struct {
	cache string // fetched clients, kept between runs
	work  string // removed after the run
	root  string // of the repository
	peer  string // the script that runs Apache Kafka and its tools, from KAFKA_PEER; empty when there is none
	short bool
	log   io.Writer // everything that clients print

	jobs         int // suites that run at once
	allowMissing bool

	making sync.Mutex // held by who fetches or builds what several suites use
}

// command makes a command that dies with its context, with all that it started.
func command(ctx context.Context, dir string, extra []string, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if len(extra) > 0 {
		cmd.Env = append(cmd.Environ(), extra...)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// output runs a command and returns standard output and standard error together.
func (e *env) output(ctx context.Context, dir string, extra []string, name string, args ...string) (string, error) {
	cmd := command(ctx, dir, extra, name, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	fmt.Fprintf(e.log, "$ %s %s\n", name, strings.Join(args, " "))
	err := cmd.Run()
	fmt.Fprintf(e.log, "%s", out.Bytes())
	if err != nil {
		err = fmt.Errorf("%w: %s", err, lastLine(out.String()))
	}
	return out.String(), err
}

// program runs one of the client programs below clients/. Each prints a line per check:
//
//	ok NAME
//	FAIL NAME: why
//	n/a NAME: why
//
// and "done" at its end, so that one which ends early is a failure of its own.
func (e *env) program(ctx context.Context, b *broker, dir, name string, args ...string) []result {
	out, err := e.output(ctx, dir, []string{"BOOTSTRAP=" + b.addr}, name, args...)
	results, done := parseProgram(out)
	if !done {
		why := "it ended before its last check"
		if ctx.Err() != nil {
			why = "it did not end in time"
		} else if err != nil {
			why += ": " + err.Error()
		}
		results = append(results, result{name: "the program as a whole", outcome: failed, why: why})
	}
	return results
}

func parseProgram(out string) (results []result, done bool) {
	lines := bufio.NewScanner(strings.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		switch word, rest, _ := strings.Cut(line, " "); word {
		case "ok":
			results = append(results, result{name: rest})
		case "FAIL", "n/a":
			name, why, _ := strings.Cut(rest, ": ")
			r := result{name: name, outcome: failed, why: why}
			if word == "n/a" {
				r.outcome = absent
			}
			results = append(results, r)
		case "done":
			done = rest == "" || done
		}
	}
	return results, done
}

// check makes the result of one step that is either right or has an error.
func check(name string, err error) result {
	if err != nil {
		return result{name: name, outcome: failed, why: oneLine(err.Error())}
	}
	return result{name: name}
}

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 300 {
		s = s[:300] + "..."
	}
	return s
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return oneLine(lines[len(lines)-1])
}
