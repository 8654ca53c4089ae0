package redlock_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/redislock/redlock"
)

// requireFindings requires findings that begin with these texts, and no others.
func requireFindings(t *testing.T, url string, want ...string) {
	t.Helper()
	d, err := redlock.Open(servertest.Within(t, 2*time.Minute), url)
	noError(t, err)
	defer d.Close()
	doctor, _ := driver.As[driver.Diagnoser](d)
	found := servertest.FindingsOf(t, doctor)
	bad := len(found) != len(want)
	for _, w := range want {
		bad = bad || !found.Have(w)
	}
	if bad {
		t.Errorf("Diagnose finds %q; want %q", found, want)
	}
}

func TestTheDoctorExaminesAllServersAndTheMajority(t *testing.T) {
	t.Parallel()
	servers, url := threeServers(t, "--appendonly", "yes")
	requireFindings(t, url)

	servers[1].Do("CONFIG", "SET", "appendonly", "no")
	requireFindings(t, url, "warning node 2 (redis): persistence ")
	servers[1].Do("CONFIG", "SET", "appendonly", "yes")

	servers[2].Do("CONFIG", "SET", "requirepass", "sesame")
	requireFindings(t, url, "error node 3 (redis) it refuses requests, and has no vote: ", "warning majority 1 of 3 nodes have no vote now, 2 are needed: no other node may fail")

	servers[2].Kill()
	requireFindings(t, url, "warning majority 1 of 3 nodes have no vote now, 2 are needed: no other node may fail. Unreachable: node 3 (redis): ")
}
