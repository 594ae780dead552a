// Package simulation runs whole nodes without doors, each stepped in a seeded order over a file system that loses what was not synced, and compares
// what they show with what a plain program makes of the same records.
//
// The journal's writer, the islands with their workers, and the clock are stepped by the test. Clients whose calls wait (SQL, checkpoints) have
// goroutines, but run only while the test waits until all of them have stopped again: everything is in a synctest bubble. The power can go between
// two steps and before any single operation on a file.
package simulation

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

var (
	seedFlag      = flag.Uint64("seed", 0, "run only the history with this seed, and say what it does; 0 runs many, from 1 on")
	historiesFlag = flag.Int("histories", 2_000, "how many histories to run")
	firstFlag     = flag.Uint64("first", 1, "seed of the first history")
)

func TestHistories(t *testing.T) {
	from, n := *firstFlag, *historiesFlag
	if *seedFlag != 0 {
		from, n = *seedFlag, 1
	}
	if testing.Short() && n > 100 {
		n = 100
	}
	var sum counts
	// One bubble for all: what the node keeps in pools may hold channels, which must not leave theirs.
	synctest.Test(t, func(t *testing.T) {
		for seed := from; seed < from+uint64(n); seed++ {
			c, err := history(seed)
			sum.add(c)
			if err != nil {
				t.Errorf("go test ./test/simulation -seed %d: %v", seed, err)
				if *seedFlag == 0 && sum.failed >= 5 {
					break
				}
			}
		}
	})
	t.Logf("%+v", sum)
	if *seedFlag == 0 && n >= 100 && !t.Failed() && (sum.crashes == 0 || sum.checks == 0 || sum.late == 0 || sum.closed == 0 || sum.deadLetters == 0 || sum.transfers == 0 ||
		sum.upgrades == 0 || sum.downgrades == 0 || sum.fleetCommits == 0 || sum.fleetRests == 0 || sum.compactions == 0) {
		t.Error("the histories show less than they should")
	}
}

// counts say what histories were made of.
type counts struct {
	histories, failed, crashes, checks, records, late, closed, deadLetters, transfers, views int
	// Of the fleet, and of the compacted topic.
	upgrades, downgrades, fleetCommits, fleetRests, compactions int
}

func (c *counts) add(o counts) {
	c.histories += o.histories
	c.failed += o.failed
	c.crashes += o.crashes
	c.checks += o.checks
	c.records += o.records
	c.late += o.late
	c.closed += o.closed
	c.deadLetters += o.deadLetters
	c.transfers += o.transfers
	c.views += o.views
	c.upgrades += o.upgrades
	c.downgrades += o.downgrades
	c.fleetCommits += o.fleetCommits
	c.fleetRests += o.fleetRests
	c.compactions += o.compactions
}

// say prints what a history does when it is the only one.
func say(format string, args ...any) {
	if *seedFlag != 0 {
		fmt.Fprintf(os.Stderr, "%s "+format+"\n", append([]any{time.Now().Format("05.000000")}, args...)...)
	}
}
