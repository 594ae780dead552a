package crash

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// build makes the binary once for all tests.
var build = sync.OnceValues(func() (string, error) {
	if *binaryFlag != "" {
		return *binaryFlag, nil
	}
	dir, err := os.MkdirTemp("", "leat-crash-")
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "leat")
	if out, err := exec.Command("go", "build", "-o", binary, "github.com/leat-io/leat/cmd/leat").CombinedOutput(); err != nil {
		return "", fmt.Errorf("building cmd/leat: %w\n%s", err, out)
	}
	return binary, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if binary, err := build(); err == nil && *binaryFlag == "" {
		_ = os.RemoveAll(filepath.Dir(binary))
	}
	os.Exit(code)
}

// server is a `leat server` process that is killed and started again, on one data folder and the same ports.
type server struct {
	t      testing.TB
	binary string
	data   string
	args   []string

	kafka, postgres, http string // from the first start on

	mu   sync.Mutex
	cmd  *exec.Cmd
	gone chan struct{} // closed when cmd has ended
	log  bytes.Buffer  // of all starts, for a test that fails
}

// newServer starts a server in a new folder.
func newServer(t testing.TB, args ...string) *server {
	t.Helper()
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, binary: binary, data: t.TempDir(), args: args, kafka: "127.0.0.1:0", postgres: "127.0.0.1:0", http: "127.0.0.1:0"}
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			s.mu.Lock()
			defer s.mu.Unlock()
			text := s.log.Bytes()
			if len(text) > 20_000 {
				text = text[len(text)-20_000:]
			}
			t.Logf("the server's log:\n%s", text)
		}
	})
	s.start(nil)
	return s
}

// start runs the server and waits until it is ready. A receive from abandon ends the wait: the process is killed, and start returns false.
func (s *server) start(abandon <-chan time.Time) bool {
	s.t.Helper()
	for attempt := 0; ; attempt++ {
		ready, err := s.launch(abandon)
		switch {
		case err == nil:
			return ready
		case attempt == 20:
			s.t.Fatalf("the server does not start: %v", err)
		}
		// Somebody's outgoing connection has one of the ports for the moment, or the last process is not quite gone.
		wait, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		<-wait.Done()
		cancel()
	}
}

func (s *server) launch(abandon <-chan time.Time) (bool, error) {
	cmd := exec.Command(s.binary, append([]string{
		"server", "--data", s.data, "--kafka", s.kafka, "--postgres", s.postgres, "--http", s.http,
	}, s.args...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	gone, ready := make(chan struct{}), make(chan map[string]string, 1)
	s.mu.Lock()
	s.cmd, s.gone = cmd, gone
	s.mu.Unlock()
	go func() {
		defer close(gone)
		s.follow(stderr, ready)
		_ = cmd.Wait()
	}()
	select {
	case addr := <-ready:
		s.kafka, s.postgres, s.http = addr["kafka"], addr["postgres"], addr["http"]
		return true, nil
	case <-abandon:
		s.kill()
		return false, nil
	case <-gone:
		return false, errors.New("it ended before it was ready; its log is below")
	case <-time.After(patience):
		s.kill()
		return false, errors.New("it was not ready in time")
	}
}

// follow reads the server's log until it ends.
func (s *server) follow(r io.Reader, ready chan<- map[string]string) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		s.mu.Lock()
		s.log.Write(lines.Bytes())
		s.log.WriteByte('\n')
		s.mu.Unlock()
		var line struct{ Msg, Kafka, Postgres, HTTP string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "ready" {
			ready <- map[string]string{"kafka": line.Kafka, "postgres": line.Postgres, "http": line.HTTP}
		}
	}
}

// kill ends the process as a power cut of its own would: nothing of it runs any more when kill returns.
func (s *server) kill() {
	s.mu.Lock()
	cmd, gone := s.cmd, s.gone
	s.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Kill()
	<-gone
}

// sql connects a PostgreSQL client.
func (s *server) sql(ctx context.Context) (*pgx.Conn, error) {
	return pgx.Connect(ctx, "postgres://test@"+s.postgres+"/leat?sslmode=disable&connect_timeout=5")
}

// must runs statements that have to work at once.
func (s *server) must(statements ...string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := s.sql(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, q := range statements {
		if _, err := conn.Exec(ctx, q); err != nil {
			s.t.Fatalf("%s: %v", q, err)
		}
	}
}
