package redlock_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/redislock/redlock"
)

// finds requires findings that begin with these texts, and no others.
func finds(t *testing.T, url string, want ...string) {
	t.Helper()
	soon, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	d, err := redlock.Open(soon, url)
	noError(t, err)
	defer d.Close()
	doctor, _ := driver.As[driver.Diagnoser](d)
	found, err := doctor.Diagnose(soon)
	noError(t, err)
	for _, f := range found {
		if f.Advice == "" { // a server's version
			continue
		}
		text := string(f.Severity) + " " + f.Subject + ": " + f.Detail
		i := slices.IndexFunc(want, func(w string) bool { return strings.HasPrefix(text, w) })
		switch {
		case i >= 0:
			want = slices.Delete(want, i, i+1)
		default:
			t.Errorf("unexpected: %s", text)
		}
	}
	if len(want) > 0 {
		t.Errorf("missing: %q in %+v", want, found)
	}
}

func TestTheDoctorExaminesAllServersAndTheMajority(t *testing.T) {
	t.Parallel()
	servers, url := three(t, "--appendonly", "yes")
	finds(t, url)

	servers[1].Do("CONFIG", "SET", "appendonly", "no")
	finds(t, url, "warning node 2 (redis): persistence: ")
	servers[1].Do("CONFIG", "SET", "appendonly", "yes")

	servers[2].Do("CONFIG", "SET", "requirepass", "sesame")
	finds(t, url, "error node 3 (redis): it refuses requests, and has no vote: ", "warning majority: 1 of 3 nodes have no vote now, 2 are needed: no other node may fail")

	servers[2].Kill()
	finds(t, url, "warning majority: 1 of 3 nodes have no vote now, 2 are needed: no other node may fail. Unreachable: node 3 (redis): ")
}
