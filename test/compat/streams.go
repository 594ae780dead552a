package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// streams counts words exactly once with Kafka Streams, kills the application twice on the way, and checks every count that
// a reader of committed records sees.
func streams(ctx context.Context, e *env, b *broker) []result {
	const lines = "40000"
	id := unique("words")
	java := func(args ...string) (string, []string, error) {
		all, err := e.javaArgs(ctx, "WordCount.java")
		return "java", append(all, args...), err
	}
	name, args, err := java("prepare", id, lines)
	if err != nil {
		return []result{check("class path", err)}
	}
	boot := []string{"BOOTSTRAP=" + b.addr}
	if _, err := e.output(ctx, e.work, boot, name, args...); err != nil {
		return []result{check("topics and input", err)}
	}
	// Two lives end by SIGKILL, the second with its folder lost; the third stays until the counts are there.
	kills := 0
	for life, lived := range []time.Duration{15 * time.Second, 15 * time.Second, 0} {
		folder := filepath.Join(e.work, id, fmt.Sprint(life))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return []result{check("folder", err)}
		}
		_, args, _ := java("count", id, folder)
		bounded, kill := context.WithCancel(ctx)
		defer kill()
		cmd := command(bounded, e.work, boot, name, args...)
		cmd.Stdout, cmd.Stderr = e.log, e.log
		if err := cmd.Start(); err != nil {
			return []result{check("start", err)}
		}
		if lived == 0 {
			break
		}
		select {
		case <-time.After(lived):
			kills++
		case <-ctx.Done():
		}
		kill()
		_ = cmd.Wait()
	}
	_, args, _ = java("verify", id, lines)
	results := e.program(ctx, b, e.work, name, args...)
	return append(results, result{name: strings.TrimSpace(fmt.Sprintf("killed %d times and resumed", kills))})
}
