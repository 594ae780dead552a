package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
)

// TestShortSuites runs the suites that need nothing but Go and kcat against a node: what CI sees of `make compat`.
func TestShortSuites(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background()) // t's own ends before the server is told to
	t.Cleanup(cancel)
	e, err := newEnv(false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(e.work) })
	e.short = true
	leat, err := startLeat(ctx, e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(leat.stop)
	short := slices.DeleteFunc(suites(), func(s suite) bool { return !s.short })
	e.jobs = len(short)
	rows, _ := runSuites(ctx, e, short, []*broker{leat})
	for _, r := range rows {
		t.Run(r.suite.name, func(t *testing.T) {
			if r.missing != "" {
				t.Fatalf("%s: scripts/test-deps installs what the tests need", r.missing)
			}
			results := r.runs[0].results
			if count(results, passed) == 0 {
				t.Error("nothing passed")
			}
			for _, f := range failures(results) {
				if known(r.suite.name, f.name) == "" {
					t.Errorf("%s: %s", f.name, f.why)
				}
			}
			t.Logf("%d passed, %d not applicable, in %.0f s", count(results, passed), count(results, absent), r.runs[0].took.Seconds())
		})
	}
}

func TestProgramLines(t *testing.T) {
	t.Parallel()
	got, done := parseProgram("noise\nok a b\nFAIL c: why: more\nn/a d: not here\ndone\n")
	want := []result{{name: "a b"}, {name: "c", outcome: failed, why: "why: more"}, {name: "d", outcome: absent, why: "not here"}}
	if !done || !slices.Equal(got, want) {
		t.Errorf("got %+v, done %v; want %+v", got, done, want)
	}
	if _, done := parseProgram("ok a\n"); done {
		t.Error("a program that ended early counts as done")
	}
}

func TestGoTestLines(t *testing.T) {
	t.Parallel()
	out := `=== RUN   TestA
=== RUN   TestA/sub
--- PASS: TestA (0.00s)
    --- PASS: TestA/sub (0.00s)
=== RUN   TestB
=== CONT  TestA
    a_test.go:1: all is well
=== NAME  TestB
    b_test.go:1: broken
--- FAIL: TestB (0.00s)
=== RUN   TestSuite
=== RUN   TestSuite/TestC
    c_test.go:1: needs more
--- PASS: TestSuite (0.00s)
    --- SKIP: TestSuite/TestC (0.00s)
`
	got := goResults(out, nil, "TestSuite")
	want := []result{{name: "TestA"}, {name: "TestB", outcome: failed, why: "b_test.go:1: broken"}, {name: "TestC", outcome: absent, why: "c_test.go:1: needs more"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestATestThatHangs(t *testing.T) {
	t.Parallel()
	out := "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestSuite\n=== RUN   TestSuite/TestC\n    c_test.go:1: delivered 7 of 8\n" +
		"panic: test timed out after 6m0s\n\trunning tests:\n\t\tTestSuite (6m0s)\n\t\tTestSuite/TestC (5m30s)\n\ngoroutine 1 [running]:\n"
	got := goResults(out, errors.New("exit status 2"), "TestSuite")
	want := []result{{name: "TestA"}, {name: "hung: TestC", outcome: failed, why: "c_test.go:1: delivered 7 of 8"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
