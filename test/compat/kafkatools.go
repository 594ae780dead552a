package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// tools runs Apache Kafka's command-line tools against one broker.
type tools struct {
	ctx context.Context
	e   *env
	b   *broker
}

// run runs a tool with --bootstrap-server.
func (t tools) run(input, name string, args ...string) (string, error) {
	return t.plain(input, name, append([]string{"--bootstrap-server", t.b.addr}, args...)...)
}

func (t tools) plain(input, name string, args ...string) (string, error) {
	cmd := command(t.ctx, t.e.work, []string{"KAFKA_HEAP_OPTS=-Xmx320m -XX:TieredStopAtLevel=1", "KAFKA_LOG_LEVEL=ERROR"}, t.e.peer, append([]string{"tool", name}, args...)...)
	var out, errs strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errs
	err := cmd.Run()
	fmt.Fprintf(t.e.log, "$ %s %s\n%s%s", name, strings.Join(args, " "), out.String(), errs.String())
	if err != nil {
		err = fmt.Errorf("%w: %s %s", err, lastLine(out.String()), oneLine(errs.String()))
	}
	return out.String(), err
}

func (t tools) create(topic string, partitions string, configs ...string) error {
	args := []string{"--create", "--topic", topic, "--partitions", partitions}
	for _, c := range configs {
		args = append(args, "--config", c)
	}
	_, err := t.run("", "topics", args...)
	return err
}

// want is a step that runs a tool and wants its output to contain something.
func (t tools) want(what []string, name string, args ...string) func() error {
	return func() error { return contains(what...)(t.run("", name, args...)) }
}

// kafkaTools uses the tools as one does from day to day: each step builds on those before it.
func kafkaTools(ctx context.Context, e *env, b *broker) []result {
	t := tools{ctx, e, b}
	topic, moved, group, perf, id := unique("tools"), unique("copy"), unique("tools"), unique("perf"), unique("copier")
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "k%d:v%d\n", i, i)
	}
	last := "v99"
	steps := []struct {
		name string
		run  func() error
	}{
		{"broker-api-versions", t.want([]string{"Produce(0): 0 to 13", "Fetch(1): 4 to", "ConsumerGroupHeartbeat(68)"}, "broker-api-versions")},
		{"features describe", t.want([]string{"transaction.version", "group.version"}, "features", "describe")},
		{"cluster cluster-id", func() error {
			return contains("Cluster ID: ")(t.plain("", "cluster", "cluster-id", "--bootstrap-server", b.addr))
		}},
		{"metadata-quorum describe --status", func() error {
			return contains("LeaderId:")(t.plain("", "metadata-quorum", "--bootstrap-server", b.addr, "describe", "--status"))
		}},
		{"topics --create", func() error { return t.create(topic, "2", "retention.ms=86400000") }},
		{"topics --list", t.want([]string{topic}, "topics", "--list")},
		{"topics --describe", t.want([]string{"PartitionCount: 2", "ReplicationFactor: 1", "retention.ms=86400000"}, "topics", "--describe", "--topic", topic)},
		{"topics --alter --partitions", func() error {
			if _, err := t.run("", "topics", "--alter", "--topic", topic, "--partitions", "3"); err != nil {
				return err
			}
			return contains("PartitionCount: 3")(t.run("", "topics", "--describe", "--topic", topic))
		}},
		{"console-producer", func() error {
			_, err := t.run(text.String(), "console-producer", "--topic", topic, "--reader-property", "parse.key=true", "--reader-property", "key.separator=:", "--compression-codec", "zstd")
			return err
		}},
		{"console-consumer --from-beginning", func() error {
			out, err := t.run("", "console-consumer", "--topic", topic, "--from-beginning", "--max-messages", "100", "--timeout-ms", "30000",
				"--group", group, "--formatter-property", "print.key=true")
			if err == nil && strings.Count(out, "\tv") != 100 {
				err = fmt.Errorf("it printed %d records, want 100", strings.Count(out, "\tv"))
			}
			return contains("k99\t"+last)(out, err)
		}},
		{"get-offsets", func() error {
			out, err := t.run("", "get-offsets", "--topic", topic)
			if err == nil && strings.Count(out, topic+":") != 3 {
				err = fmt.Errorf("not three partitions: %s", oneLine(out))
			}
			return err
		}},
		{"get-offsets --time earliest, max-timestamp", func() error {
			if err := contains(topic+":0:0", topic+":2:0")(t.run("", "get-offsets", "--topic", topic, "--time", "earliest")); err != nil {
				return err
			}
			return contains(topic + ":")(t.run("", "get-offsets", "--topic", topic, "--time", "max-timestamp"))
		}},
		{"consumer-groups --list --state", t.want([]string{group, "Empty"}, "consumer-groups", "--list", "--state")},
		{"consumer-groups --describe", t.want([]string{group, topic}, "consumer-groups", "--describe", "--group", group)},
		{"consumer-groups --describe --state, --members", func() error {
			if err := contains(group)(t.run("", "consumer-groups", "--describe", "--group", group, "--state")); err != nil {
				return err
			}
			_, err := t.run("", "consumer-groups", "--describe", "--group", group, "--members", "--verbose")
			return err
		}},
		{"consumer-groups --reset-offsets --dry-run", t.want([]string{topic}, "consumer-groups", "--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--dry-run")},
		{"consumer-groups --reset-offsets --execute", func() error {
			if _, err := t.run("", "consumer-groups", "--reset-offsets", "--group", group, "--all-topics", "--to-earliest", "--execute"); err != nil {
				return err
			}
			out, err := t.run("", "console-consumer", "--topic", topic, "--max-messages", "100", "--timeout-ms", "30000", "--group", group)
			return contains(last)(out, err)
		}},
		{"consumer-groups --delete-offsets", func() error {
			_, err := t.run("", "consumer-groups", "--delete-offsets", "--group", group, "--topic", topic)
			return err
		}},
		{"consumer-groups --delete", t.want([]string{"successful"}, "consumer-groups", "--delete", "--group", group)},
		{"groups --list", func() error { _, err := t.run("", "groups", "--list"); return err }},
		{"configs: a topic", func() error {
			if _, err := t.run("", "configs", "--alter", "--entity-type", "topics", "--entity-name", topic, "--add-config", "max.message.bytes=2000000,retention.ms=7200000"); err != nil {
				return err
			}
			if err := contains("max.message.bytes=2000000", "retention.ms=7200000")(t.run("", "configs", "--describe", "--entity-type", "topics", "--entity-name", topic)); err != nil {
				return err
			}
			_, err := t.run("", "configs", "--alter", "--entity-type", "topics", "--entity-name", topic, "--delete-config", "max.message.bytes")
			return err
		}},
		{"configs: the broker, --all", t.want([]string{"log.retention"}, "configs", "--describe", "--entity-type", "brokers", "--entity-name", "1", "--all")},
		{"delete-records", func() error {
			file := filepath.Join(e.work, "delete.json")
			if err := os.WriteFile(file, fmt.Appendf(nil, `{"version":1,"partitions":[{"topic":%q,"partition":0,"offset":3}]}`, topic), 0o644); err != nil {
				return err
			}
			if _, err := t.run("", "delete-records", "--offset-json-file", file); err != nil {
				return err
			}
			return contains(topic + ":0:3")(t.run("", "get-offsets", "--topic", topic, "--time", "earliest"))
		}},
		{"log-dirs --describe", t.want([]string{`"partition":"` + topic + `-0"`}, "log-dirs", "--describe", "--topic-list", topic)},
		{"leader-election", func() error {
			_, err := t.run("", "leader-election", "--election-type", "preferred", "--topic", topic, "--partition", "0")
			return err
		}},
		{"producer-perf-test", func() error {
			if err := t.create(perf, "2"); err != nil {
				return err
			}
			return contains("20000 records sent")(t.run("", "producer-perf-test", "--topic", perf, "--num-records", "20000", "--record-size", "512", "--throughput", "-1", "--command-property", "acks=all"))
		}},
		{"producer-perf-test, transactions", func() error {
			return contains("5000 records sent")(t.run("", "producer-perf-test", "--topic", perf, "--num-records", "5000", "--record-size", "100", "--throughput", "-1",
				"--transactional-id", unique("perf"), "--transaction-duration-ms", "50"))
		}},
		{"consumer-perf-test", func() error {
			return contains("25000")(t.run("", "consumer-perf-test", "--topic", perf, "--num-records", "25000", "--timeout", "30000"))
		}},
		{"e2e-latency", func() error {
			return contains("Percentiles")(t.run("", "e2e-latency", "--topic", unique("e2e"), "--num-records", "500", "--producer-acks", "all", "--record-size", "100"))
		}},
		{"verifiable-producer", func() error {
			if err := t.create(moved, "2"); err != nil {
				return err
			}
			return contains(`"sent":1000`, `"acked":1000`)(t.run("", "verifiable-producer", "--topic", moved, "--max-messages", "1000", "--acks", "-1"))
		}},
		{"verifiable-consumer, classic", func() error { return t.verifiable(moved) }},
		{"verifiable-consumer, --group-protocol consumer", func() error { return t.verifiable(moved, "--group-protocol", "consumer") }},
		{"transactional-message-copier", func() error {
			to := unique("copied")
			if err := t.create(to, "2"); err != nil {
				return err
			}
			for p := range 2 {
				if _, err := t.plain("", "transactional-message-copier", "--broker-list", b.addr, "--input-topic", moved, "--input-partition", fmt.Sprint(p), "--output-topic", to,
					"--max-messages", "-1", "--transaction-size", "100", "--transactional-id", fmt.Sprint(id, p), "--consumer-group", unique("copier"), "--enable-random-aborts"); err != nil {
					return err
				}
			}
			out, err := t.run("", "console-consumer", "--topic", to, "--from-beginning", "--timeout-ms", "20000", "--command-property", "isolation.level=read_committed")
			if n := len(strings.Fields(out)); n != 1000 {
				return errors.Join(fmt.Errorf("it copied %d records, want 1000", n), err)
			}
			return nil
		}},
		{"transactions list", func() error {
			return contains(id + "0")(t.plain("", "transactions", "--bootstrap-server", b.addr, "list"))
		}},
		{"transactions describe", func() error {
			return contains(id+"0", "TransactionState", "60000")(t.plain("", "transactions", "--bootstrap-server", b.addr, "describe", "--transactional-id", id+"0"))
		}},
		{"transactions describe-producers", func() error {
			return contains("ProducerId")(t.plain("", "transactions", "--bootstrap-server", b.addr, "describe-producers", "--topic", perf, "--partition", "0"))
		}},
		{"transactions find-hanging", func() error {
			_, err := t.plain("", "transactions", "--bootstrap-server", b.addr, "find-hanging", "--topic", perf)
			return err
		}},
		{"dump-log over the segments", func() error {
			if b.data == "" {
				return errors.New("the folder of the segments is not known")
			}
			for _, of := range []string{topic, perf} {
				file := filepath.Join(b.data, of+"-0", "00000000000000000000.log")
				out, err := t.plain("", "dump-log", "--files", file, "--deep-iteration", "--print-data-log")
				if err != nil {
					return err
				}
				if strings.Contains(out, "isvalid: false") || !strings.Contains(out, "baseOffset: 0") {
					return fmt.Errorf("dump-log of %s: %s", file, oneLine(out))
				}
			}
			return nil
		}},
		{"client-compatibility", func() error {
			_, err := t.run("", "client-compatibility", "--topic", unique("compatibility"), "--offsets-for-times-supported", "true", "--cluster-id-supported", "true",
				"--expect-record-too-large-exception", "false", "--num-cluster-nodes", "1", "--idempotent-producer-supported", "true",
				"--describe-acls-supported", "true", "--describe-configs-supported", "true", "--create-topics-supported", "true")
			return err
		}},
		{"topics --delete", func() error {
			if _, err := t.run("", "topics", "--delete", "--topic", topic); err != nil {
				return err
			}
			out, err := t.run("", "topics", "--list")
			if strings.Contains(out, topic) {
				err = errors.Join(err, errors.New("it is still listed"))
			}
			return err
		}},
	}
	var results []result
	for _, s := range steps {
		results = append(results, check(s.name, s.run()))
	}
	return results
}

// verifiable runs verifiable-consumer until it has read the thousand records.
func (t tools) verifiable(topic string, args ...string) error {
	ctx, cancel := context.WithTimeout(t.ctx, time.Minute)
	defer cancel()
	t.ctx = ctx
	out, err := t.run("", "verifiable-consumer", append([]string{"--topic", topic, "--group-id", unique("verifiable"), "--max-messages", "1000", "--reset-policy", "earliest"}, args...)...)
	return contains("partitions_assigned", "offsets_committed", "shutdown_complete")(out, err)
}
