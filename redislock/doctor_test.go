package redislock_test

import (
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/redisscript"
	"github.com/pawl-go/pawl/internal/redistest"
)

func TestTheDoctorFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	healthy := redistest.Start(t, "--appendonly", "yes")
	if found := diagnose(t, openDriver(t, "redis://"+healthy.Addr)); found != "" {
		t.Errorf("of a healthy server: %s", found)
	}
	server := redistest.Start(t)
	replica := redistest.StartReplica(t, server)
	evicting := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	for url, want := range map[string]string{
		"redis://" + evicting.Addr:                    "error maxmemory-policy,warning persistence",
		"redis://" + server.Addr:                      "warning persistence,warning min-replicas-to-write",
		"redis://" + healthy.Addr + "?tracking=false": "info tracking",
		"redis://" + healthy.Addr + "?push=false":     "info push",
		user(t, healthy, rights+" "+rightsToTrack):    "warning push,info server settings,info rights,info rights",
	} {
		if found := diagnose(t, openDriver(t, url)); found != want {
			t.Errorf("%s: %s; want %s", url, found, want)
		}
	}
	// A replica refuses commands that write, but it can be examined.
	if found := diagnose(t, openDriver(t, "redis://"+replica.Addr)); !strings.HasPrefix(found, "error role") {
		t.Errorf("of a replica: %s", found)
	}
}

// diagnose returns the doctor's findings, in short.
func diagnose(t *testing.T, d *redisscript.Driver) string {
	t.Helper()
	found, err := d.Diagnose(ctx)
	if err != nil {
		t.Error(err)
	}
	var short []string
	for _, f := range found {
		if f.Advice == "" { // the server's version
			continue
		}
		short = append(short, string(f.Severity)+" "+f.Subject)
	}
	return strings.Join(short, ",")
}
