package main

import (
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-go/pawl"
)

// lostLease is a lease that was lost.
type lostLease struct {
	jobLease
	err error
}

func (l lostLease) Err() error { return l.err }

func TestAnAcceptedGraceIsGivenInFull(t *testing.T) {
	for _, ttl := range []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 150 * time.Millisecond, 200 * time.Millisecond, 5 * time.Second, time.Hour} {
		longest := time.Duration(0)
		for grace := time.Duration(0); grace < ttl/2; grace += max(ttl/1000, time.Millisecond) {
			f := &commandFlags{}
			cmd := &cobra.Command{}
			cmd.Flags().Var((*seconds)(&f.grace), "grace", "")
			noError(t, cmd.Flags().Set("grace", grace.String()))
			if f.checkGrace(cmd, ttl) != nil {
				continue
			}
			longest = grace
			begun := time.Now()
			lease := lostLease{err: &pawl.LostError{StopBy: begun.Add(f.margin(cmd, ttl))}}
			if got := killTime(lease, begun, grace).Sub(begun); got != grace {
				t.Errorf("ttl %v: of a grace of %v the command gets %v", ttl, grace, got)
			}
		}
		t.Logf("ttl %v: the longest grace is %v", ttl, longest)
	}
}
