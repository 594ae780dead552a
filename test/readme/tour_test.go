// Package readme runs what README says, word for word: every command of its console blocks, in order, with the output that stands below it.
package readme

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

const root = "../.."

// command is one command of a console block and what it prints.
type command struct {
	line   int
	text   string
	output string
}

var heredoc = regexp.MustCompile(`<<'(\w+)'`)

// commands reads the console blocks of a document.
func commands(t *testing.T, doc string) []command {
	t.Helper()
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	var out []command
	inside, until := false, ""
	for i, l := range strings.Split(string(text), "\n") {
		switch {
		case !inside:
			inside = l == "```console"
		case until != "":
			last := &out[len(out)-1]
			last.text += "\n" + l
			if l == until {
				until = ""
			}
		case l == "```":
			inside = false
		case strings.HasPrefix(l, "$ "):
			out = append(out, command{line: i + 1, text: l[2:]})
			if m := heredoc.FindStringSubmatch(l); m != nil {
				until = m[1]
			}
		case len(out) == 0:
			t.Fatalf("%s:%d: output without a command", doc, i+1)
		default:
			out[len(out)-1].output += l + "\n"
		}
	}
	return out
}

// TestTour runs README's tour. The ports and the data folder are replaced by free ones; nothing else is.
func TestTour(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"psql", "kcat", "curl", "pkill", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("the tour needs %s: install it (packages postgresql-client, kcat, curl, procps)", tool)
		}
	}
	data := filepath.Join(t.TempDir(), "tour-data")
	kafka, postgres, http := freePort(t), freePort(t), freePort(t)
	replace := strings.NewReplacer("tour-data", data, "9092", kafka, "4566", postgres, "8080", http)
	env := append(os.Environ(),
		"LEAT_KAFKA=127.0.0.1:"+kafka, "LEAT_POSTGRES=127.0.0.1:"+postgres, "LEAT_HTTP=127.0.0.1:"+http, "LEAT_BROKERS=127.0.0.1:"+kafka,
		"PGTZ=UTC", "PAGER=cat", "LC_ALL=C.UTF-8")
	for _, c := range commands(t, root+"/README.md") {
		where := fmt.Sprintf("README.md:%d: %s", c.line, c.text)
		text := replace.Replace(c.text)
		if strings.HasPrefix(text, "bin/leat server ") {
			startServer(t, text, env)
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		cmd := exec.CommandContext(ctx, "bash", "-c", text)
		cmd.Dir, cmd.Env = root, env
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		cancel()
		if err != nil {
			t.Fatalf("%s\n%v\n%s%s", where, err, stdout.String(), stderr.String())
		}
		if got, want := stdout.String(), replace.Replace(c.output); got != want {
			t.Fatalf("%s\nprinted:\n%s\nREADME says:\n%s\n%s", where, got, want, stderr.String())
		}
	}
}

// startServer runs a server command in the background until the test ends and waits until it is ready.
func startServer(t *testing.T, text string, env []string) {
	t.Helper()
	cmd := exec.Command("bash", "-c", "exec "+text)
	cmd.Dir, cmd.Env = root, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	var log strings.Builder
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		log.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), `"msg":"ready"`) {
			go func() {
				for lines.Scan() { // the server must not block on its log
				}
			}()
			return
		}
	}
	t.Fatalf("%s\nended before it was ready:\n%s", text, log.String())
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
