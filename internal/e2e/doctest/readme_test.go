package doctest

import (
	"context"
	"testing"

	"github.com/pawl-go/pawl/pawltest"
)

func TestTheREADMELimitsAndTries(t *testing.T) {
	backend := pawltest.New(t)
	locks := backend.Client(nil)
	exports, cleanUps := 0, 0
	export := func(context.Context) error { exports++; return nil }
	cleanUp := func(context.Context) error { cleanUps++; return nil }
	for round := range 2 {
		if round == 1 {
			hold(t, backend, "cleanup")
		}
		noError(t, readmeLimitAndTry(t.Context(), locks, export, cleanUp))
	}
	if exports != 2 || cleanUps != 1 {
		t.Errorf("%d exports, %d clean-ups", exports, cleanUps)
	}
}
