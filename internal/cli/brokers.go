package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// brokerFlag adds --brokers, which --bootstrap and --bootstrap-server name too, and returns where its value is.
func brokerFlag(cmd *cobra.Command) *string {
	cmd.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "bootstrap" || name == "bootstrap-server" {
			name = "brokers"
		}
		return pflag.NormalizedName(name)
	})
	return cmd.PersistentFlags().StringP("brokers", "b", "127.0.0.1:9092", "addresses of the Kafka door, separated by commas; also --bootstrap")
}

func connectBrokers(brokers string, opts ...kgo.Opt) (*kgo.Client, error) {
	seeds := strings.Split(brokers, ",")
	for i, s := range seeds {
		seeds[i] = strings.TrimSpace(s)
		if err := checkAddress(seeds[i], strings.Contains(seeds[i], ":")); err != nil {
			return nil, usage("--brokers %q: %w", brokers, err)
		}
	}
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(seeds...), kgo.ClientID("leat")}, opts...)...)
	if err != nil {
		return nil, usage("--brokers %q: %w", brokers, err)
	}
	return client, nil
}

// checkAddress refuses what nothing can be dialled at.
func checkAddress(addr string, withPort bool) error {
	host, port := addr, "1"
	if withPort {
		var err error
		if host, port, err = net.SplitHostPort(addr); err != nil {
			host = ""
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); host == "" || strings.ContainsAny(host, " /@?#") || err != nil || n == 0 {
		return fmt.Errorf("%q is no address such as 127.0.0.1:9092", addr)
	}
	return nil
}

// ping tells early, and in one line, that there is no server.
func ping(ctx context.Context, client *kgo.Client, brokers string) error {
	if err := client.Ping(ctx); err != nil {
		return fmt.Errorf("no Kafka door answers at %s (is `leat server` running? --brokers names another): %w", brokers, err)
	}
	return nil
}

// cluster is a server to administer: kadm's requests, and the client for those that it does not have.
type cluster struct {
	*kadm.Client
	kafka *kgo.Client
}

// admin runs fn with a client for administration.
func admin(ctx context.Context, brokers string, fn func(*cluster) error) error {
	client, err := connectBrokers(brokers)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := ping(ctx, client, brokers); err != nil {
		return err
	}
	return fn(&cluster{kadm.NewClient(client), client})
}

// remedies say what can be done about an error of the protocol, where its name does not.
var remedies = map[*kerr.Error]string{
	kerr.UnknownTopicOrPartition: "`leat topic list` shows what there is, `leat topic create` makes it",
	kerr.TopicAlreadyExists:      "`leat topic describe` shows it, `leat topic alter-config` and `add-partitions` change it",
	kerr.NonEmptyGroup:           "stop its members first; `leat group describe` lists them",
	kerr.GroupIDNotFound:         "`leat group list` shows what there is",
	kerr.GroupSubscribedToTopic:  "a member of the group reads the topic: stop it first",
	kerr.UnknownMemberID:         "the group has members: stop them first; `leat group describe` lists them",
	kerr.OffsetOutOfRange:        "`leat topic describe` shows where each partition starts and ends",
	kerr.KafkaStorageError:       "the disk may be full, or the partition damaged: see the server's log",
	kerr.UnsupportedVersion:      "the server does not serve this request",
	kerr.MessageTooLarge:         "`leat topic alter-config --set max.message.bytes=N` lets larger ones in",
	kerr.InvalidTimestamp:        "the topic bounds how far a record's timestamp may be from now: message.timestamp.before.max.ms and message.timestamp.after.max.ms",
	kerr.TransactionalIDNotFound: "`leat txn list` shows what there is",
}

// refused makes an answer of the server readable: what it is about, the server's words, and what can be done.
func refused(about string, err error, message string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	var k *kerr.Error
	isCode := errors.As(err, &k)
	switch {
	case message == "":
	case isCode: // what the protocol says of the code in general is often about something else
		text = k.Message + ": " + message
	case !strings.Contains(text, message):
		text += ": " + message
	}
	if isCode && remedies[k] != "" {
		text += " (" + remedies[k] + ")"
	}
	return &serverError{fmt.Sprintf("%s: %s", about, text), err}
}

// answer is refused for a code of the protocol; zero is no error.
func answer(about string, code int16, message *string) error {
	text := ""
	if message != nil {
		text = *message
	}
	return refused(about, kerr.ErrorForCode(code), text)
}

// serverError is a refusal with the code that it was refused with.
type serverError struct {
	text string
	err  error
}

func (e *serverError) Error() string { return e.text }
func (e *serverError) Unwrap() error { return e.err }

// completeTopics and completeGroups offer names to the shell.
func completeTopics(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return complete(cmd, prefix, func(ctx context.Context, a *cluster) ([]string, error) {
		topics, err := a.ListTopics(ctx)
		return topics.Names(), err
	})
}

func completeGroups(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return complete(cmd, prefix, func(ctx context.Context, a *cluster) ([]string, error) {
		groups, err := a.ListGroups(ctx)
		return groups.Groups(), err
	})
}

// completionPatience is how long a shell waits for names; without a server there are none.
const completionPatience = 500 * time.Millisecond

func complete(cmd *cobra.Command, prefix string, names func(context.Context, *cluster) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	_ = fromEnvironment(cmd, nil)
	ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
	defer cancel()
	var out []string
	brokers, _ := cmd.Flags().GetString("brokers")
	_ = admin(ctx, brokers, func(a *cluster) error {
		all, err := names(ctx, a)
		for _, n := range all {
			if strings.HasPrefix(n, prefix) {
				out = append(out, n)
			}
		}
		return err
	})
	return out, cobra.ShellCompDirectiveNoFileComp
}
