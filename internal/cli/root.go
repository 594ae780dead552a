// Package cli is the command line of leat. Data goes to standard output, everything else to standard error; the exit codes are 0 for success,
// 1 for a failure, 2 for wrong usage, 3 for an SQL error and 130 for an interrupt.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The exit codes.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitSQL         = 3
	exitInterrupted = 130
)

// codeError is an error with an exit code of its own.
type codeError struct {
	code   int
	err    error
	logged bool // the log has it: it is not printed once more
}

func (e *codeError) Error() string { return e.err.Error() }
func (e *codeError) Unwrap() error { return e.err }

func usage(format string, args ...any) error {
	return &codeError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// Main runs a command line and returns its exit code.
func Main(args []string, in io.Reader, out, errs io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var coded *codeError
	switch {
	case errors.As(err, &coded):
		if !coded.logged {
			fmt.Fprintln(errs, "leat:", coded.err)
		}
		return coded.code
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return exitInterrupted
	}
	fmt.Fprintln(errs, "leat:", err)
	if slices.ContainsFunc(misuse, func(prefix string) bool { return strings.HasPrefix(err.Error(), prefix) }) {
		return exitUsage
	}
	return exitFailed
}

// misuse is how cobra's own errors about arguments and flags begin.
var misuse = []string{"unknown ", "accepts ", "requires ", "if any flags in the group", "at least one of the flags in the group", "required flag"}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "leat",
		Short: "The log and the brain of stream processing in one binary",
		Long: "Leat is a log that Kafka's clients use, and an engine that keeps SQL views over it up to date, exactly once.\n" +
			"Every flag can also be set as an environment variable: --state-memory is LEAT_STATE_MEMORY.",
		SilenceUsage:      true,
		SilenceErrors:     true,
		PersistentPreRunE: fromEnvironment,
	}
	root.SetFlagErrorFunc(flagError)
	root.AddGroup(&cobra.Group{ID: "node", Title: "The node:"}, &cobra.Group{ID: "log", Title: "The log (any Kafka server: --brokers):"})
	for group, commands := range map[string][]*cobra.Command{
		"node": {serverCommand(), sqlCommand(), demoCommand(), benchCommand()},
		"log":  {topicCommand(), produceCommand(), consumeCommand(), groupCommand(), configCommand(), txnCommand()},
	} {
		for _, c := range commands {
			c.GroupID = group
		}
		root.AddCommand(commands...)
	}
	root.AddCommand(versionCommand())
	for _, c := range root.Commands() {
		if c.HasSubCommands() {
			needsCommand(c)
		}
	}
	return root
}

// needsCommand makes a command that is only a group of others show them, and refuse what is none of them: cobra itself would show its help and be content.
func needsCommand(c *cobra.Command) {
	c.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		err := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			err += "; did you mean " + strings.Join(near, " or ") + "?"
		}
		return usage("%s (%s --help lists them)", err, cmd.CommandPath())
	}
	c.SuggestionsMinimumDistance = 2
	c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}

// exclusiveFlags is where cobra notes the groups of flags of which only one may be given.
const exclusiveFlags = "cobra_annotation_mutually_exclusive"

// fromEnvironment gives flags that are not on the command line the value of their LEAT_ variable, unless the command line has one that excludes them.
func fromEnvironment(cmd *cobra.Command, _ []string) error {
	given := map[string]bool{}
	cmd.Flags().Visit(func(f *pflag.Flag) { given[f.Name] = true })
	excluded := func(f *pflag.Flag) bool {
		return slices.ContainsFunc(f.Annotations[exclusiveFlags], func(group string) bool {
			return slices.ContainsFunc(strings.Fields(group), func(name string) bool { return given[name] })
		})
	}
	var failed error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if given[f.Name] || failed != nil || f.Name == "help" || excluded(f) {
			return
		}
		name := "LEAT_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if v, ok := os.LookupEnv(name); ok {
			if err := f.Value.Set(v); err != nil {
				failed = usage("%s=%q: %w", name, v, err)
			}
			f.Changed = true // as on the command line, for those that ask whether it was given
		}
	})
	return failed
}
