package pawl_test

import (
	"fmt"
	"testing"
)

// The backend, the network and the users' functions fail, and the client is closed in
// different ways. The Observer still gets exactly one Released or Lost for each lease
// that was acquired, Do returns each loss, and nothing is left behind.
func TestEachLeaseEndsOnceOverAHostileDriver(t *testing.T) {
	for seed := range uint64(150) {
		runInWorld(t, fmt.Sprint("seed ", seed), func(t *testing.T, w *world) { newHostileRun(t, w, seed).run() })
	}
}
