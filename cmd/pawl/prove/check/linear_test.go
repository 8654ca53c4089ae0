package check

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

func TestLinearizable(t *testing.T) {
	unfenced := run(func(r *history.Run) { r.Fenced = false })
	try := how(history.Try)
	refused := func(asked, answered int64, changes ...change) *history.Claim {
		return wait(9, asked, answered, history.Held, append([]change{try}, changes...)...)
	}
	checkCases(t, []historyCase{
		{"a try is refused while another holds", []any{hold(1, 0, 10, 20, 1), refused(12, 13)}, ""},
		{"a try is refused while another is granted", []any{hold(1, 0, 10, 20, 1), refused(5, 13)}, ""},
		{"a try is refused although the name is free", []any{hold(1, 0, 10, 20, 1), refused(23, 24)}, Linearizable},
		{"a try is refused before the first grant", []any{refused(1, 2), hold(1, 5, 10, 20, 1)}, Linearizable},
		{"a try is refused, and another waits", []any{
			hold(1, 0, 10, 20, 1), wait(2, 15, 30, history.TimedOut), refused(23, 24),
		}, ""},
		{"a try is refused, and another has failed", []any{
			hold(1, 0, 10, 20, 1), wait(2, 15, 16, history.Unknown), refused(2000, 2001),
		}, ""},
		{"a try is refused, and another has failed long ago", []any{
			hold(1, 0, 10, 20, 1), wait(2, 15, 16, history.Unknown), refused(4017, 4018),
		}, Linearizable},
		{"a try is refused while a dead holder's lease lasts", []any{
			hold(1, 0, 10, 20, 1, died(15, 20)), refused(2000, 2001),
		}, ""},
		{"a try is refused long after the holder's death", []any{
			hold(1, 0, 10, 20, 1, died(15, 20)), refused(4021, 4022),
		}, Linearizable},
		{"a try for permits is refused", []any{
			hold(1, 0, 10, 20, 1, permits(2)), refused(12, 13, permits(2)),
		}, ""},
		{"a try for permits is refused although they are free", []any{
			hold(1, 0, 10, 20, 1, permits(2)), refused(12, 13, permits(1)),
		}, Linearizable},
		{"a reader is refused beside a writer", []any{hold(1, 0, 10, 20, 1, writer), refused(12, 13, reader)}, ""},
		{"a reader is refused beside a reader", []any{
			hold(1, 0, 10, 20, 1, reader), refused(12, 13, reader),
		}, Linearizable},

		{"an answer comes after the next lease's answer", []any{
			hold(1, 0, 30, 0, 1, lost(0, 31, 31, 32)), hold(2, 5, 20, 25, 2),
		}, ""},
		{"a lease that expired", []any{
			hold(1, 0, 10, 20, 1, lost(15, 40, 40, 41)), hold(2, 5, 30, 50, 2),
		}, ""},
		{"granted beside a lease that was released later", []any{
			hold(1, 0, 10, 40, 1, believed(15)), hold(2, 5, 30, 50, 2, lost(0, 51, 51, 52)),
		}, "linearizable release-lied"},
		{"the fences contradict the times", []any{
			hold(1, 0, 10, 20, 2), hold(2, 5, 30, 50, 1),
		}, Linearizable},

		{"without fences", []any{unfenced, hold(1, 0, 10, 20, 0), hold(2, 5, 30, 50, 0), hold(3, 6, 60, 70, 0)}, ""},
		{"without fences, the order of permits", []any{
			unfenced, hold(1, 0, 10, 20, 0, permits(3)), hold(2, 5, 30, 50, 0, permits(2)), hold(3, 6, 29, 70, 0, permits(1)),
		}, ""},
		{"without fences, a permit too many", []any{
			unfenced, hold(1, 0, 10, 40, 0, permits(3), believed(15)), hold(2, 5, 30, 50, 0, permits(2)),
		}, "linearizable release-lied"},
		{"without fences, a lease that may have ended before Got", []any{
			unfenced, hold(1, 0, 10, 40, 0, believed(15)), hold(2, 5, 30, 50, 0, lost(0, 51, 51, 52)),
		}, ""},
		{"without fences, a try that such a lease explains", []any{
			unfenced, hold(1, 0, 10, 20, 0, lost(0, 21, 21, 22)), refused(900, 901),
		}, ""},
	})
}

func TestAPieceBeginsWithTheStateAfterThePieceBeforeIt(t *testing.T) {
	var claims []any
	claims = append(claims, hold(1, 0, 1, 5000, 1, permits(1)))
	for i := range int64(1000) {
		at := 2 + 4*i
		claims = append(claims, hold(i+2, at, at+1, at+2, uint64(i+2), permits(2)))
	}
	v := verdict(t, claims...)
	if len(v.Violations) > 0 {
		t.Error(texts(v))
	}
	if n := v.Numbers; n.PorcupinePieces < 10 || n.PorcupineOperations != 2002 {
		t.Errorf("%d pieces with %d operations; want 10 or more with 2002", n.PorcupinePieces, n.PorcupineOperations)
	}
	if n := v.Numbers; n.PorcupineNames != 3 || n.PorcupineGaveUp != 0 {
		t.Errorf("porcupine decided %d names and gave up on %d pieces; want 3 and 0", n.PorcupineNames, n.PorcupineGaveUp)
	}
	claims = append(claims, wait(2000, 4100, 4101, history.Held, permits(1), how(history.Try)))
	if v := verdict(t, claims...); v.Count[Linearizable] != 1 {
		t.Error("a permit was free when the last claim was refused, but the rule found no violation")
	}
}

// Porcupine gives the same answer if it searches all orders of the leases, without the
// narrowed times and the known order.
func TestTightenKeepsTheAnswer(t *testing.T) {
	for _, fenced := range []bool{true, false} {
		dice := rand.New(rand.NewPCG(1, 2))
		correct := 0
		for range 3000 {
			r := run(func(r *history.Run) { r.Fenced = fenced })
			claims := fewClaims(dice, fenced)
			w := newWorld(historyOf(lines(r, claims)))
			w.linearizable(w.names[2])
			narrowed := w.Count[Linearizable] == 0
			notNarrowed := isExplained(w, w.names[2])
			// Without fences, newNameHistory omits some leases.
			if narrowed != notNarrowed && (fenced || notNarrowed || !slices.ContainsFunc(claims, isOmitted)) {
				t.Fatalf("with fences: %t; narrowed: %t, not narrowed: %t\n%s", fenced, narrowed, notNarrowed, texts(w.verdict()))
			}
			if notNarrowed {
				correct++
			}
		}
		if correct < 300 || correct > 2700 {
			t.Errorf("%d of 3000 histories are correct; the test needs both kinds", correct)
		}
	}
}

func isOmitted(c *history.Claim) bool { return c.Answer == history.Granted && !lasted(c) }

// fewClaims returns some claims for permits, with random times and answers.
func fewClaims(dice *rand.Rand, fenced bool) []*history.Claim {
	var claims []*history.Claim
	for i := range 2 + dice.Int64N(4) {
		asked := dice.Int64N(10)
		got := asked + 1 + dice.Int64N(10)
		until := got + dice.Int64N(8)
		c := hold(i+1, asked, got, until, uint64(i+1), permits(1+dice.IntN(2)))
		if !fenced {
			c.Fence = 0
		}
		if dice.IntN(3) == 0 {
			lost(0, until, until, until+1)(c)
		}
		if dice.IntN(6) == 0 {
			c = wait(i+1, got, got, history.Held, permits(2), how(history.Try))
		}
		claims = append(claims, c)
	}
	return claims
}

// isExplained reports whether porcupine finds an order without tighten and pieces.
func isExplained(w *world, n *name) bool {
	s := &nameHistory{name: n}
	for _, c := range n.granted {
		s.leases = append(s.leases, w.lease(c))
	}
	s.refusals = w.refusals(n)
	type all struct {
		held  string // the indexes of the held leases, as runes
		fence uint64
	}
	m := porcupine.Model{
		Init: func() any { return all{} },
		Step: func(state, input, _ any) (bool, any) {
			now, st := state.(all), input.(*step)
			c := lockState{}
			for _, i := range now.held {
				c.held = append(c.held, int(i))
			}
			switch i := slices.Index(c.held, st.lease); st.kind {
			case leaseBegin:
				after := all{now.held + string(rune(st.lease)), max(now.fence, st.claim.Fence)}
				return s.fits(c, st.claim) && (!w.Run.Fenced || st.claim.Fence > now.fence), after
			case leaseEnd:
				return i >= 0, all{strings.ReplaceAll(now.held, string(rune(st.lease)), ""), now.fence}
			default:
				return !s.fits(c, st.claim), now
			}
		},
	}
	p := &piece{steps: s.steps()}
	return porcupine.CheckOperations(m, p.operations())
}
