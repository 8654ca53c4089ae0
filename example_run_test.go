package pawl_test

import (
	"testing"
	"testing/synctest"
)

// Examples with a *testing.T are not run by the go command.
func TestTheExampleWithSynctestHolds(t *testing.T) { synctest.Test(t, stopsWhenItsLockIsTaken) }
