package redisscript

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// With 64 goroutines on two cores, each additional allocation costs as much as a mutex.
func TestACallAllocatesOneStringAndTheListOfItsParts(t *testing.T) {
	d := New(&Client{}, Options{Prefix: "pawl:", Retention: time.Hour})
	defer d.Close()
	claim := driver.Claim{Name: "job", Token: driver.NewToken(), Weight: driver.Exclusive, TTL: time.Minute}
	lease := driver.LeaseRef{Name: claim.Name, Token: claim.Token}
	claimant := d.signals.claimantArg("inbox", "", &claim)
	batch := make([]*step, 64)
	for i := range batch {
		batch[i] = &step{quickStep: quickStep{claim: claim, claimant: claimant}}
	}
	var command Command
	for what, c := range map[string]struct {
		max  float64
		step func()
	}{
		"the claimant":    {0, func() { claimant = d.signals.claimantArg("inbox", "", &claim) }},
		"a claim":         {2, func() { s, c := d.claimCall(&claim, 1, claimant); command = s.command(c) }},
		"a release":       {2, func() { command = Release.command(d.releaseCall(&lease, 0)) }},
		"64 steps in one": {3, func() { command = Many.command(d.pack(batch)) }},
	} {
		if n := testing.AllocsPerRun(10, c.step); n > c.max {
			t.Errorf("%s: %v allocations, want at most %v; %v", what, n, c.max, command.Words[0])
		}
	}
}
