package check

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// The test draws which kinds of faults happen.
func TestTheHistoryOfACorrectLockBreaksNoRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := checked(someHistory(t))
		if len(v.Violations) > 0 {
			t.Errorf("violations:\n%s", texts(v))
		}
	})
}

// A simulated run of some minutes is long enough to have no weakness.
func TestSimulationHasNoWeakness(t *testing.T) {
	v := checked(simulate(1, 8, ms(200_000), history.Stop, history.Kill, history.Silence))
	if len(v.Violations)+len(v.Weaknesses) > 0 {
		t.Errorf("violations:\n%s\nweaknesses: %q", texts(v), v.Weaknesses)
	}
	t.Logf("%+v", v.Numbers)
}

func checked(lines []history.Line) *Verdict { return Run(historyOf(lines)) }

func someHistory(t *rapid.T) []history.Line {
	var kinds []string
	for _, k := range []string{history.Stop, history.Kill, history.Silence} {
		if rapid.Bool().Draw(t, k) {
			kinds = append(kinds, k)
		}
	}
	return simulate(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 8).Draw(t, "workers"),
		ms(rapid.Int64Range(100, 10_000).Draw(t, "length")), kinds...)
}
