package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

func benchCommand() *cobra.Command {
	return &cobra.Command{Use: "bench", RunE: func(*cobra.Command, []string) error { return errors.New("not built yet") }}
}
