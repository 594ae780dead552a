// Package testpg runs a real PostgreSQL for tests: the oracle that results are compared with. One server is started in a
// temporary folder when a test binary first asks for it, on a Unix socket that nobody else knows, and ends with the binary.
//
// A package that uses it has
//
//	func TestMain(m *testing.M) { os.Exit(testpg.Run(m)) }
//
// The databases use the C collation and UTF-8. When there is no PostgreSQL the test fails and says what to install: a
// missing oracle must not look like agreement.
package testpg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	startTimeout = 60 * time.Second
	stopTimeout  = 20 * time.Second
)

type server struct {
	dir  string
	done chan struct{} // closed when the process has ended
	cmd  *exec.Cmd
	log  bytes.Buffer
}

var (
	once     sync.Once
	shared   *server
	failure  error
	database atomic.Int64
)

// Run runs the tests and stops the server, if one was started. It is for TestMain.
func Run(m *testing.M) int {
	code := m.Run()
	if shared != nil {
		shared.stop()
	}
	return code
}

// DSN is a connection string for a new, empty database of this test.
func DSN(tb testing.TB) string {
	tb.Helper()
	once.Do(func() { shared, failure = start() })
	if failure != nil {
		tb.Fatal(failure)
	}
	ctx := context.Background()
	admin, err := pgx.Connect(ctx, shared.dsn("postgres"))
	if err != nil {
		tb.Fatalf("testpg: connecting: %v", err)
	}
	defer admin.Close(ctx)
	name := "test" + strconv.FormatInt(database.Add(1), 10)
	if _, err := admin.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		tb.Fatalf("testpg: %v", err)
	}
	return shared.dsn(name)
}

// Connect opens a connection to a new, empty database, closed when the test ends.
func Connect(tb testing.TB) *pgx.Conn {
	tb.Helper()
	conn, err := pgx.Connect(context.Background(), DSN(tb))
	if err != nil {
		tb.Fatalf("testpg: connecting: %v", err)
	}
	tb.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func (s *server) dsn(db string) string {
	return fmt.Sprintf("host=%s user=leat dbname=%s sslmode=disable timezone=UTC", s.dir, db)
}

// find is the folder with PostgreSQL's programs, the newest there is.
func find() (string, error) {
	if dir := os.Getenv("LEAT_TEST_POSTGRES_BIN"); dir != "" {
		return dir, nil
	}
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	sort.Slice(dirs, func(i, j int) bool { return major(dirs[i]) > major(dirs[j]) })
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil {
			return dir, nil
		}
	}
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		dir := strings.TrimSpace(string(out))
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil {
			return dir, nil
		}
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	return "", errors.New("testpg: there is no PostgreSQL server on this machine, and it is what results are compared with.\n" +
		"Install PostgreSQL 15 or later (Debian and Ubuntu: apt-get install postgresql; macOS: brew install postgresql@16),\n" +
		"or name the folder with initdb and postgres in LEAT_TEST_POSTGRES_BIN")
}

func major(dir string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
	return n
}

// account is whom the server runs as: PostgreSQL refuses to run as root.
func account() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("testpg: running as root, and there is no user postgres or nobody to run PostgreSQL as")
}

func start() (*server, error) {
	bin, err := find()
	if err != nil {
		return nil, err
	}
	who, err := account()
	if err != nil {
		return nil, err
	}
	// A short path: a socket's is limited to about 100 bytes.
	base := os.TempDir()
	if len(base) > 40 {
		base = "/tmp"
	}
	dir, err := os.MkdirTemp(base, "leatpg")
	if err != nil {
		return nil, fmt.Errorf("testpg: %w", err)
	}
	if who != nil {
		if err := os.Chown(dir, int(who.Uid), int(who.Gid)); err != nil {
			return nil, fmt.Errorf("testpg: %w", err)
		}
	}
	s := &server{dir: dir, done: make(chan struct{})}
	data := filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "leat", "--auth=trust", "--locale=C", "--encoding=UTF8", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = dir, &syscall.SysProcAttr{Credential: who}
	if out, err := initdb.CombinedOutput(); err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("testpg: initdb: %w\n%s", err, out)
	}
	s.cmd = exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off",
		"-c", "full_page_writes=off", "-c", "synchronous_commit=off", "-c", "shared_buffers=32MB", "-c", "max_connections=50",
		"-c", "autovacuum=off", "-c", "timezone=UTC", "-c", "log_timezone=UTC", "-c", "max_wal_size=256MB", "-c", "wal_level=logical")
	s.cmd.Dir, s.cmd.SysProcAttr = dir, processAttributes(who)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	started := make(chan error)
	go func() {
		// The kernel ends the server when the thread that started it ends: this one lives as long as the server.
		runtime.LockOSThread()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait()
			close(s.done)
		}
	}()
	if err := <-started; err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("testpg: %w", err)
	}
	if err := s.ready(); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *server) ready() error {
	deadline := time.NewTimer(startTimeout)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		conn, err := pgx.Connect(ctx, s.dsn("postgres"))
		if err == nil {
			conn.Close(ctx)
			cancel()
			return nil
		}
		cancel()
		select {
		case <-s.done:
			return fmt.Errorf("testpg: the server ended at once:\n%s", s.log.String())
		case <-deadline.C:
			return fmt.Errorf("testpg: the server did not start within %s: %w", startTimeout, err)
		case <-tick.C:
		}
	}
}

func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGQUIT) // PostgreSQL's immediate shutdown
	select {
	case <-s.done:
	case <-time.After(stopTimeout):
		_ = s.cmd.Process.Kill()
		<-s.done
	}
	os.RemoveAll(s.dir)
}
