package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// pythonReady makes a virtual environment with the clients that requirements.txt names.
func pythonReady(ctx context.Context, e *env) error {
	if err := needs("python3")(ctx, e); err != nil {
		return err
	}
	venv := filepath.Join(e.cache, "python")
	wanted := filepath.Join(e.root, "test/compat/clients/python/requirements.txt")
	return e.fetched(venv, wanted, func() error {
		if _, err := e.output(ctx, e.work, nil, "python3", "-m", "venv", venv); err != nil {
			return fmt.Errorf("make a Python environment: %w", err)
		}
		if _, err := e.output(ctx, e.work, nil, filepath.Join(venv, "bin/pip"), "install", "-q", "--disable-pip-version-check", "-r", wanted); err != nil {
			return fmt.Errorf("install the Python clients: %w", err)
		}
		return nil
	})
}

// nodeReady installs the clients that package.json names.
func nodeReady(ctx context.Context, e *env) error {
	if err := needs("node", "npm")(ctx, e); err != nil {
		return err
	}
	dir := filepath.Join(e.cache, "node")
	wanted := filepath.Join(e.root, "test/compat/clients/node/package.json")
	return e.fetched(dir, wanted, func() error {
		b, err := os.ReadFile(wanted)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "package.json"), b, 0o644); err != nil {
			return err
		}
		if _, err := e.output(ctx, dir, nil, "npm", "install", "--no-audit", "--no-fund", "--loglevel=error"); err != nil {
			return fmt.Errorf("install the JavaScript clients: %w", err)
		}
		return nil
	})
}

// fetched makes a folder of the cache, once for what the file wanted says.
func (e *env) fetched(dir, wanted string, fetch func() error) error {
	e.making.Lock()
	defer e.making.Unlock()
	want, err := os.ReadFile(wanted)
	if err != nil {
		return err
	}
	mark := filepath.Join(dir, ".fetched")
	if have, err := os.ReadFile(mark); err == nil && string(have) == string(want) {
		return nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := fetch(); err != nil {
		return err
	}
	return os.WriteFile(mark, want, 0o644)
}

func python(program string) func(context.Context, *env, *broker) []result {
	return func(ctx context.Context, e *env, b *broker) []result {
		dir := filepath.Join(e.root, "test/compat/clients/python")
		return e.program(ctx, b, dir, filepath.Join(e.cache, "python/bin/python"), "-B", filepath.Join(dir, program))
	}
}

// node runs a program beside the clients that it imports, which is where Node looks for them.
func node(program string) func(context.Context, *env, *broker) []result {
	return func(ctx context.Context, e *env, b *broker) []result {
		dir := filepath.Join(e.cache, "node")
		if err := e.place(dir, "test/compat/clients/node", "checks.mjs", program); err != nil {
			return []result{check("the program as a whole", err)}
		}
		return e.program(ctx, b, dir, "node", program)
	}
}

// place copies files of the repository into a folder, unless they are there as they should be: another suite may be reading them.
func (e *env) place(dir, from string, names ...string) error {
	e.making.Lock()
	defer e.making.Unlock()
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(e.root, from, name))
		if err != nil {
			return err
		}
		if old, err := os.ReadFile(filepath.Join(dir, name)); err == nil && bytes.Equal(old, text) {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func sarama(ctx context.Context, e *env, b *broker) []result {
	return e.program(ctx, b, filepath.Join(e.root, "test/compat/clients/sarama"), "go", "run", ".")
}

// javaHeap holds Java to what a shared machine can spare.
var javaHeap = []string{"-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"}

// javaArgs compiles a program, once for all runs, and returns how it is called.
func (e *env) javaArgs(ctx context.Context, program string) ([]string, error) {
	e.making.Lock()
	defer e.making.Unlock()
	out, err := e.output(ctx, e.work, nil, e.peer, "classpath")
	if err != nil {
		return nil, fmt.Errorf("the class path: %w", err)
	}
	path, classes, class := strings.TrimSpace(out), filepath.Join(e.work, "classes"), strings.TrimSuffix(program, ".java")
	if _, err := os.Stat(filepath.Join(classes, class+".class")); err != nil {
		if _, err := e.output(ctx, e.work, nil, "javac", "-d", classes, "-cp", path, filepath.Join(e.root, "test/compat/clients/java", program)); err != nil {
			return nil, fmt.Errorf("compile %s: %w", program, err)
		}
	}
	return append(slices.Clone(javaHeap), "-cp", classes+":"+path, class), nil
}

func javaProgram(program string) func(context.Context, *env, *broker) []result {
	return func(ctx context.Context, e *env, b *broker) []result {
		args, err := e.javaArgs(ctx, program)
		if err != nil {
			return []result{check("the program as a whole", err)}
		}
		return e.program(ctx, b, e.work, "java", args...)
	}
}

// unique names topics and groups so that runs against one broker do not meet.
func unique(prefix string) string { return fmt.Sprintf("%s-%d", prefix, time.Now().UnixNano()) }
