// Command leat is the log and the brain of stream processing in one binary: see README.md.
package main

import (
	"os"

	"github.com/leat-io/leat/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
