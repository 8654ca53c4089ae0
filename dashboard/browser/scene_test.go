package browser

import "testing"

// The scene contains everything that the pictures promise to operators.
func TestTheSceneHasWhatOperatorsMeet(t *testing.T) {
	s := newScene(t)
	s.advance(0)
	for name, want := range map[string][2]int{ // holders, waiters
		"leader:billing": {1, 2}, "nightly-report": {1, 2}, "exports": {3, 0}, "stock:us": {1, 1},
		"catalog": {3, 1}, "warm-cache": {1, 0}, "invoice:48214": {1, 0},
	} {
		e, err := s.beside.Inspect(t.Context(), name)
		noError(t, err)
		if got := [2]int{len(e.Holders), len(e.Waiters)}; got != want {
			t.Errorf("%s has %d holders and waiters, want %d", name, got, want)
		}
	}
}
