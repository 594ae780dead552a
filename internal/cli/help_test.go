package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Every command says in a line what it does, and every flag what it is for; what lists or describes can be read by programs.
func TestHelp(t *testing.T) {
	t.Parallel()
	var walk func(c *cobra.Command, path string)
	walk = func(c *cobra.Command, path string) {
		if c.Short == "" || strings.HasSuffix(c.Short, ".") || len(c.Short) > 90 {
			t.Errorf("%s: %q is no short description", path, c.Short)
		}
		for line := range strings.SplitSeq(c.Long, "\n") {
			if len(line) > 160 {
				t.Errorf("%s: a line of its help has %d characters", path, len(line))
			}
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s says nothing", path, f.Name)
			}
		})
		if name := c.Name(); (name == "list" || name == "describe" || name == "get") && c.Flags().Lookup("output") == nil {
			t.Errorf("%s has no --output", path)
		}
		for _, sub := range c.Commands() {
			walk(sub, path+" "+sub.Name())
		}
	}
	root := newRoot()
	for _, c := range root.Commands() {
		walk(c, "leat "+c.Name())
	}
}
