package quorumlock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/memlock"
	"github.com/pawl-go/pawl/quorumlock"
)

// wantFindings requires exactly these findings, each as "SEVERITY SUBJECT: DETAIL", where
// " ... " stands for any text.
func wantFindings(t *testing.T, d *quorumlock.Driver, want ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	found, err := d.Diagnose(ctx)
	noError(t, err)
	for i, f := range found {
		text := string(f.Severity) + " " + f.Subject + ": " + f.Detail
		if f.Advice == "" {
			t.Errorf("%s: no advice", text)
		}
		if i >= len(want) {
			t.Errorf("unexpected: %s", text)
			continue
		}
		head, part, _ := strings.Cut(want[i], " ... ")
		if !strings.HasPrefix(text, head) || !strings.Contains(text, part) {
			t.Errorf("found %s\nwant  %s", text, want[i])
		}
	}
	if len(found) < len(want) {
		t.Errorf("missing: %q", want[len(found):])
	}
}

func TestTheDoctorComparesTheNodes(t *testing.T) {
	refusal := &driver.Error{Backend: "memory", Op: "dial", Hint: "check the password", Permanent: true, Err: errors.New("NOAUTH")}
	for name, test := range map[string]struct {
		nodes   int
		disturb func(servers cluster, lines []*line)
		want    []string
	}{
		"Nothing":             {3, func(cluster, []*line) {}, nil},
		"ClocksAreNearEnough": {3, func(servers cluster, _ []*line) { servers[0].skew = 200 * time.Millisecond }, nil},
		"ClocksAreFarApart": {
			3, func(servers cluster, _ []*line) { servers[0].skew, servers[2].skew = time.Second, -time.Second },
			[]string{"warning clocks: node 1 (memory) is 2s ahead of node 3 (memory)"},
		},
		"OneIsDown": {
			3, func(_ cluster, lines []*line) { lines[1].down.Store(true) },
			[]string{"warning majority: 1 of 3 nodes have no vote now, 2 are needed: no other node may fail. Unreachable: node 2 (memory) ... refused"},
		},
		"OneHangs": {
			5, func(_ cluster, lines []*line) { lines[4].hung.Store(true) },
			[]string{"warning majority: 1 of 5 nodes have no vote now, 3 are needed: no more than 1 others may fail. Unreachable: node 5 (memory) ... deadline"},
		},
		"AMajorityIsDown": {
			3, func(_ cluster, lines []*line) { lines[1].down.Store(true); lines[2].silent.Store(true) },
			[]string{"error majority: 2 of 3 nodes have no vote now, 2 are needed: no lease is granted ... node 3"},
		},
		"OneRefuses": {
			3, func(_ cluster, lines []*line) { lines[0].refusal = refusal },
			[]string{"error node 1 (memory): it refuses requests, and has no vote ... NOAUTH", "warning majority: 1 of 3 ... no other node may fail"},
		},
		"AnEvenNumber": {4, func(cluster, []*line) {}, []string{"info nodes: 4 nodes survive the loss of 1, as 3 do"}},
		"One":          {1, func(cluster, []*line) {}, []string{"info nodes: a quorum of one"}},
	} {
		inBubble(t, name, func(t *testing.T) {
			servers := newCluster(test.nodes)
			d, lines := servers.client(t, 10*time.Millisecond)
			test.disturb(servers, lines)
			wantFindings(t, d, test.want...)
			time.Sleep(time.Minute)
			servers.wantNothingKept(t, "pawl doctor")
		})
	}
}

func TestTheDoctorFindsTwoNodesOnOneServer(t *testing.T) {
	one, other := memlock.NewMemory(nil), memlock.NewMemory(nil)
	d := quorumOf(t, nil, one.Driver(), other.Driver(), one.Driver())
	wantFindings(t, d, "error node 1 (memory) and node 3 (memory): they are the same server")
}

// A limitedDriver has fewer abilities than others, and its doctor reports that.
type limitedDriver struct {
	driver.Driver
	driver.FenceRaiser
}

func (l limitedDriver) Properties() driver.Properties {
	p := l.Driver.Properties()
	p.Backend, p.PushesGrants, p.MinTTL = "limited", false, time.Minute
	return p
}

func (l limitedDriver) Diagnose(context.Context) ([]driver.Finding, error) {
	return []driver.Finding{{Severity: "error", Subject: "ability", Detail: "limited", Advice: "more"}}, nil
}

func TestTheDoctorNamesTheNodeThatLimitsAll(t *testing.T) {
	m := engine.Full(memlock.New(nil))
	d := quorumOf(t, nil, memlock.New(nil), limitedDriver{m, m}, memlock.New(nil))
	wantFindings(t, d,
		"error node 2 (limited): ability: limited",
		"info node 2 (limited): the shortest TTL of the quorum is 1m0s",
		"info node 2 (limited): it does not push",
		"info node 2 (limited): it cannot list",
		"info node 2 (limited): it cannot break")
	noError(t, d.Close())
	if _, err := d.Diagnose(t.Context()); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("Diagnose after Close: %v; want ErrClosed", err)
	}
}

// An unreachedDriver has not reached its server, and so does not know its abilities.
type unreachedDriver struct{ limitedDriver }

func (unreachedDriver) Acquire(context.Context, driver.Claim) (driver.Grant, error) {
	return driver.Grant{}, &driver.Error{Backend: "limited", Op: "acquire", Err: errors.New("connection refused")}
}

func TestTheDoctorDoesNotJudgeTheAbilitiesOfAnUnreachedNode(t *testing.T) {
	m := engine.Full(memlock.New(nil))
	d := quorumOf(t, nil, memlock.New(nil), unreachedDriver{limitedDriver{m, m}}, memlock.New(nil))
	wantFindings(t, d, "warning majority: 1 of 3 nodes have no vote now")
}

func TestTheDoctorReportsACommonFindingOnce(t *testing.T) {
	m, n := engine.Full(memlock.New(nil)), engine.Full(memlock.New(nil))
	d := quorumOf(t, nil, limitedDriver{m, m}, memlock.New(nil), limitedDriver{n, n})
	found, err := d.Diagnose(t.Context())
	noError(t, err)
	found = slices.DeleteFunc(found, func(f driver.Finding) bool { return !strings.HasSuffix(f.Subject, "ability") })
	if len(found) != 1 || found[0].Subject != "node 1 (limited), node 3 (limited): ability" {
		t.Errorf("findings about the ability: %+v; want one", found)
	}
}
