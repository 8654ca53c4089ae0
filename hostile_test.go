package pawl_test

import (
	"fmt"
	"testing"
)

// Whatever the backend, the network, the users' functions and their ends do, the Observer's books are right: each lease
// that was acquired is once released or lost, a loss is no success, and nothing is left behind.
func TestBooksAddUpOverAHostileDriver(t *testing.T) {
	for seed := range uint64(150) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) { newHostility(t, w, seed).run() })
		})
	}
}
