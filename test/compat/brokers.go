package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// startLeat builds the binary and runs a node on a fresh folder.
func startLeat(ctx context.Context, e *env) (*broker, error) {
	bin := filepath.Join(e.work, "leat")
	// With the flags of the other tests, whose packages need not be compiled again then.
	if out, err := e.output(ctx, e.root, nil, "go", "build", "-o", bin, "./cmd/leat"); err != nil {
		return nil, fmt.Errorf("build leat: %w\n%s", err, out)
	}
	data := filepath.Join(e.work, "leat-data")
	cmd := command(ctx, e.work, nil, bin, "server", "--data", data,
		"--kafka", "127.0.0.1:0", "--postgres", "127.0.0.1:0", "--http", "127.0.0.1:0")
	errs, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start leat: %w", err)
	}
	ready := make(chan string, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(ready)
		logged, err := os.Create(filepath.Join(e.work, "leat.log"))
		if err != nil {
			return
		}
		defer logged.Close()
		lines := bufio.NewScanner(errs)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			fmt.Fprintln(logged, lines.Text())
			var l struct{ Msg, Kafka string }
			if json.Unmarshal(lines.Bytes(), &l) == nil && l.Msg == "ready" {
				ready <- l.Kafka
			}
		}
	}()
	stop := func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-read
		_ = cmd.Wait()
	}
	select {
	case addr, ok := <-ready:
		if !ok {
			_ = cmd.Wait()
			return nil, fmt.Errorf("leat ended before it was ready: see %s", filepath.Join(e.work, "leat.log"))
		}
		return &broker{name: "Leat", addr: addr, data: filepath.Join(data, "topics"), stop: stop}, nil
	case <-time.After(time.Minute):
		stop()
		return nil, errors.New("leat was not ready within a minute")
	}
}

// startKafka runs an Apache Kafka through the script that KAFKA_PEER names.
func startKafka(ctx context.Context, e *env) (*broker, error) {
	dir := filepath.Join(e.work, "kafka")
	out, err := e.output(ctx, e.work, []string{"KAFKA_HEAP_OPTS=-Xms512M -Xmx512M"}, e.peer, "start", "--port", "0", "--dir", dir)
	if err != nil {
		return nil, fmt.Errorf("start Apache Kafka: %w", err)
	}
	addr, _, _ := strings.Cut(lastLine(out), " ")
	name := "Apache Kafka"
	if v, err := e.output(ctx, e.work, nil, e.peer, "version"); err == nil {
		name += " " + strings.TrimSpace(v)
	}
	return &broker{name: name, addr: addr, data: filepath.Join(dir, "data"), stop: func() {
		_, _ = e.output(context.WithoutCancel(ctx), e.work, nil, e.peer, "stop", "--dir", dir, "--kill")
	}}, nil
}
