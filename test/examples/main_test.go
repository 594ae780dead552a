// Package examples shows the worked examples that every reader of the field knows, and what is under examples/, on a whole node.
package examples

import (
	"os"
	"testing"

	"github.com/leat-io/leat/internal/testpg"
)

func TestMain(m *testing.M) { os.Exit(testpg.Run(m)) }
