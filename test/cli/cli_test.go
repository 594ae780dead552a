// Package cli runs the command line as users do: see testdata/*.txtar. Beside testscript's own commands there are
//
//	server DIR [ARG...]   starts `leat server --data DIR ARG...` on free ports, waits until it is ready, and points the LEAT_ variables of clients at it
//	terminate             sends the server SIGTERM and wants exit code 0
//	kill9                 sends the server SIGKILL
//	code N COMMAND...     runs a command and wants its exit code
//	get PATH [TEXT]       fetches PATH from the HTTP door, which is to hold TEXT
//	feed FILE COMMAND...  starts a command with FILE as the beginning of its standard input, which stays open until the script ends
//	until REGEXP COMMAND  runs a command again and again until its standard output matches
package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/leat-io/leat/internal/cli"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"leat": func() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

func TestCommands(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"server": startServer, "terminate": terminate, "kill9": kill, "code": code, "get": get, "until": until, "feed": feed,
		},
	})
}

// running is the server of a script.
type running struct {
	cmd *exec.Cmd
}

func (r *running) end(s syscall.Signal) error {
	if err := r.cmd.Process.Signal(s); err != nil {
		return err
	}
	return r.cmd.Wait()
}

// servers are the scripts' servers, by script.
var servers = registry{by: map[*testscript.TestScript]*running{}}

type registry struct {
	mu sync.Mutex
	by map[*testscript.TestScript]*running
}

func (g *registry) put(ts *testscript.TestScript, r *running) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.by[ts] = r
}

func (g *registry) get(ts *testscript.TestScript) *running {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.by[ts]
	if r == nil {
		ts.Fatalf("no server runs")
	}
	return r
}

func startServer(ts *testscript.TestScript, _ bool, args []string) {
	cmd := exec.Command("leat", append([]string{"server", "--data", ts.MkAbs(args[0]), "--kafka", "127.0.0.1:0", "--postgres", "127.0.0.1:0", "--http", "127.0.0.1:0"}, args[1:]...)...)
	path, err := exec.LookPath("leat")
	ts.Check(err)
	cmd.Path = path
	cmd.Env = append(os.Environ(), "HOME="+ts.Getenv("WORK"))
	stderr, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	r := &running{cmd}
	ts.Defer(func() { _ = r.cmd.Process.Kill() })
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		var line struct{ Msg, Kafka, Postgres, HTTP string }
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.Msg != "ready" {
			ts.Logf("server: %s", lines.Text())
			continue
		}
		ts.Setenv("LEAT_BROKERS", line.Kafka)
		ts.Setenv("LEAT_POSTGRES", line.Postgres)
		ts.Setenv("HTTP_DOOR", line.HTTP)
		go func() { _, _ = io.Copy(io.Discard, stderr) }()
		servers.put(ts, r)
		return
	}
	ts.Fatalf("the server ended before it was ready: %v", cmd.Wait())
}

func terminate(ts *testscript.TestScript, _ bool, _ []string) {
	if err := servers.get(ts).end(syscall.SIGTERM); err != nil {
		ts.Fatalf("after SIGTERM: %v", err)
	}
}

func kill(ts *testscript.TestScript, _ bool, _ []string) { _ = servers.get(ts).end(syscall.SIGKILL) }

func code(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func feed(ts *testscript.TestScript, _ bool, args []string) {
	cmd := exec.Command(args[1], args[2:]...)
	path, err := exec.LookPath(args[1])
	ts.Check(err)
	cmd.Path = path
	cmd.Env = append(os.Environ(), "LEAT_BROKERS="+ts.Getenv("LEAT_BROKERS"))
	in, err := cmd.StdinPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	ts.Defer(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	_, err = io.WriteString(in, ts.ReadFile(args[0]))
	ts.Check(err)
}

func until(ts *testscript.TestScript, _ bool, args []string) {
	want, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); {
		if ts.Exec(args[1], args[2:]...) == nil && want.MatchString(ts.ReadFile("stdout")) {
			return
		}
	}
	ts.Fatalf("what was waited for did not come: %s", args[0])
}

func get(ts *testscript.TestScript, neg bool, args []string) {
	client := http.Client{Timeout: 10 * time.Second}
	resp, err := client.Get("http://" + ts.Getenv("HTTP_DOOR") + args[0])
	ts.Check(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ts.Check(err)
	if ok := resp.StatusCode == http.StatusOK; ok == neg {
		ts.Fatalf("%s: status %d", args[0], resp.StatusCode)
	}
	if len(args) > 1 && !strings.Contains(string(body), args[1]) {
		ts.Fatalf("%s does not hold %q:\n%s", args[0], args[1], body)
	}
}
