package main

import (
	"context"
	"fmt"
	"strings"
)

// kcat drives kcat, as a shell script would.
func kcat(ctx context.Context, e *env, b *broker) []result {
	run := func(input string, args ...string) (string, error) {
		cmd := command(ctx, e.work, nil, "kcat", append([]string{"-b", b.addr}, args...)...)
		var out, errs strings.Builder
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errs
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("kcat %s: %w: %s", strings.Join(args, " "), err, lastLine(errs.String()))
		}
		return out.String(), nil
	}
	var lines []string
	for i := range 200 {
		lines = append(lines, fmt.Sprint("line ", i))
	}
	text := strings.Join(lines, "\n") + "\n"
	var results []result
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		topic := unique("kcat-" + codec)
		_, err := run(text, "-P", "-t", topic, "-p", "0", "-z", codec)
		if err == nil {
			err = same(text)(run("", "-C", "-q", "-e", "-t", topic, "-o", "beginning"))
		}
		results = append(results, check("produce and consume, "+codec, err))
	}

	topic := unique("kcat")
	steps := []struct {
		name string
		run  func() error
	}{
		{"keys and headers", func() error {
			if _, err := run("k:v\n", "-P", "-t", topic, "-K:", "-H", "h=1"); err != nil {
				return err
			}
			return same("k v h=1 0\n")(run("", "-C", "-q", "-e", "-t", topic, "-o", "beginning", "-f", "%k %s %h %o\n"))
		}},
		{"idempotent producer", func() error {
			if _, err := run(text, "-P", "-t", topic, "-X", "enable.idempotence=true", "-X", "acks=all"); err != nil {
				return err
			}
			return same(text)(run("", "-C", "-q", "-e", "-t", topic, "-o", "1"))
		}},
		{"consume by timestamp", func() error {
			return same("v\n" + text)(run("", "-C", "-q", "-e", "-t", topic, "-o", "s@1", "-f", "%s\n"))
		}},
		{"offset of a timestamp", func() error {
			return contains("offset 0")(run("", "-Q", "-t", topic+":0:1"))
		}},
		{"metadata", func() error {
			return contains(`topic "` + topic + `" with 1 partitions`)(run("", "-L", "-t", topic))
		}},
		{"group, auto commit", func() error {
			group := unique("kcat")
			if err := same("v\n" + text)(run("", "-G", group, "-q", "-e", "-X", "auto.offset.reset=earliest", topic)); err != nil {
				return err
			}
			if _, err := run("more\n", "-P", "-t", topic); err != nil {
				return err
			}
			return same("more\n")(run("", "-G", group, "-q", "-e", "-X", "auto.offset.reset=earliest", topic))
		}},
	}
	for _, s := range steps {
		results = append(results, check(s.name, s.run()))
	}
	return append(results,
		result{name: "transactions", outcome: absent, why: "kcat cannot begin one"},
		result{name: "admin", outcome: absent, why: "kcat has no such commands"})
}

// same wants a command's output to be this.
func same(want string) func(string, error) error {
	return func(got string, err error) error {
		if err == nil && got != want {
			err = fmt.Errorf("got %.60q (%d bytes), want %.60q (%d bytes)", got, len(got), want, len(want))
		}
		return err
	}
}

// contains wants a command's output to contain this.
func contains(want ...string) func(string, error) error {
	return func(got string, err error) error {
		for _, w := range want {
			if err == nil && !strings.Contains(got, w) {
				err = fmt.Errorf("no %q in %q", w, oneLine(got))
			}
		}
		return err
	}
}
