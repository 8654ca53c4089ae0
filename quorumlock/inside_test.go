package quorumlock

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/memlock"
)

var noError = basictest.NoError

func TestATagIsRemovedAsItWasAdded(t *testing.T) {
	token := driver.NewToken()
	for _, client := range []string{"", "web-1", "q:", strings.Repeat("c", 230), "caf\u00e9"} {
		in := newTag(token, 42)
		tagged := in.addTo(driver.Owner{Client: client, PID: 7})
		if err := tagged.Validate(); err != nil {
			t.Errorf("client %q: %v", client, err)
		}
		if out, o := untag(tagged); out != in || o.Client != client || o.PID != 7 {
			t.Errorf("client %q became %+v with %+v", client, o, out)
		}
	}
	if tagged := newTag(token, 1).addTo(driver.Owner{Client: strings.Repeat("\u00e9", 128)}); tagged.Validate() != nil {
		t.Errorf("a long client id became one of %d bytes", len(tagged.Client))
	}
	a, _ := untag(driver.Owner{Client: "not claimed through a quorum"})
	if b, _ := untag(driver.Owner{Client: "nor this"}); a == b {
		t.Error("two owners without tags are considered equal")
	}
}

// A node's signal counts only for a grant that is newer than the node's last answer.
func TestAnOldSignalDoesNotCount(t *testing.T) {
	grant := driver.Grant{Fence: 7, Fences: 1}
	for name, test := range map[string]struct {
		state nodeState
		want  bool
	}{
		"BeforeTheAnswer":               {nodeState{signaled: grant}, false},
		"OfAGrantBeforeTheLastAnswer":   {nodeState{answered: true, lastFence: 7, signaled: grant}, false},
		"OfAGrantAfterTheLastAnswer":    {nodeState{answered: true, lastFence: 6, signaled: grant}, true},
		"NotNeededIfTheAnswerWasAGrant": {nodeState{answered: true, grant: grant}, true},
		"AfterTheGrantWasReleased":      {nodeState{grant: grant, signaled: grant}, false},
	} {
		if _, got := test.state.granted(); got != test.want {
			t.Errorf("%s: granted is %v", name, got)
		}
	}
}

// The last fence is at least the highest that a majority knows, even if some nodes of
// that majority have not answered.
func TestTheLastFenceOfAMajority(t *testing.T) {
	for _, test := range []struct {
		nodes  int
		fences []uint64
		want   uint64
	}{
		{3, []uint64{5, 9, 5}, 5}, // only one node has 9: no client got that fence
		{3, []uint64{5, 9, 9}, 9},
		{3, []uint64{5, 9}, 9},    // the third may have 9, too
		{3, []uint64{5, 7, 9}, 9}, // granted by releases: they will agree on 9
		{5, []uint64{1, 2, 3, 4, 5}, 5},
		{5, []uint64{1, 7, 7, 7, 9}, 7},
		{5, []uint64{1, 2, 3}, 3},
		{1, []uint64{4}, 4},
	} {
		d := &Driver{nodes: make([]*node, test.nodes), majority: test.nodes/2 + 1}
		if got := d.majorityFence(test.fences); got != test.want {
			t.Errorf("of %d nodes %d answered: %d, want %d", test.nodes, test.fences, got, test.want)
		}
	}
}

func TestNewRefusesInvalidNodes(t *testing.T) {
	one := memlock.New(nil)
	for name, nodes := range map[string][]driver.Driver{
		"None":             nil,
		"Nil":              {one, nil, memlock.New(nil)},
		"Twice":            {one, memlock.New(nil), one},
		"NoFencesToRaise":  {struct{ driver.Driver }{one}, memlock.New(nil)},
		"NoneOfTheseRaise": {struct{ driver.Driver }{one}, struct{ driver.Driver }{memlock.New(nil)}},
	} {
		if _, err := New(nodes, nil); err == nil {
			t.Errorf("%s: New returned no error", name)
		}
	}
	d, err := New([]driver.Driver{struct{ driver.Driver }{one}}, nil)
	if err != nil {
		t.Errorf("a single node without RaiseFence: %v", err)
	} else {
		noError(t, d.Close())
	}
}

// A slowNode is a node whose releases take 10 ms.
type slowNode struct {
	engine.Driver
	releases atomic.Int64
}

func (s *slowNode) Release(ctx context.Context, l driver.LeaseRef) error {
	s.releases.Add(1)
	time.Sleep(10 * time.Millisecond)
	return s.Driver.Release(ctx, l)
}

// A release becomes due again while it is being sent, because a late answer reports an
// Acquire that may have arrived after that release.
func TestAReleaseThatBecomesDueAgainIsSentAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		node := &slowNode{Driver: engine.Full(memlock.New(nil))}
		d, err := servertest.As[*quorum](New([]driver.Driver{node}, nil))
		noError(t, err)
		l := driver.LeaseRef{Name: "x", Token: driver.NewToken(), TTL: time.Second}
		d.pending.release(0, l)
		time.Sleep(5 * time.Millisecond)
		d.pending.release(0, l)
		time.Sleep(time.Second)
		if n := node.releases.Load(); n != 2 {
			t.Errorf("%d releases, want 2", n)
		}
		noError(t, d.Close())
	})
}

// A release in the background waits for the requests of its token. Meanwhile, releases of
// other tokens are sent.
func TestAHungRequestDelaysOnlyItsToken(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		node := &slowNode{Driver: engine.Full(memlock.New(nil))}
		d, err := servertest.As[*quorum](New([]driver.Driver{node}, nil))
		noError(t, err)
		var hung []slot
		for range maxRequestsPerNode {
			token := driver.NewToken()
			hung = append(hung, d.sequences.enter(token, d.allNodes)...)
			d.pending.release(0, driver.LeaseRef{Name: "x", Token: token, TTL: time.Hour})
		}
		synctest.Wait()
		d.pending.release(0, driver.LeaseRef{Name: "x", Token: driver.NewToken(), TTL: time.Hour})
		time.Sleep(4 * time.Second)
		if n := node.releases.Load(); n != 1 {
			t.Errorf("%d releases beside the hung requests, want 1", n)
		}
		for _, s := range hung {
			d.sequences.leave(s)
		}
		time.Sleep(time.Minute)
		if n := node.releases.Load(); n != 1+maxRequestsPerNode {
			t.Errorf("%d releases, want %d", n, 1+maxRequestsPerNode)
		}
		noError(t, d.Close())
	})
}

// A foreignCtx is not of package context: a ctx derived from it ends a moment later than
// the ctx itself.
type foreignCtx struct{ context.Context }

func (c foreignCtx) Value(any) any { return nil }

func TestTheRequestsEndWithTheCallersCtx(t *testing.T) {
	for range 100 {
		bubble.Test(t, func(t *testing.T) {
			var nodes []driver.Driver
			for range 3 {
				nodes = append(nodes, memlock.NewMemory(nil).Driver())
			}
			d, err := servertest.As[*quorum](New(nodes, nil))
			noError(t, err)
			defer d.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			var requests atomic.Int32
			go poll(foreignCtx{ctx}, d, pollRequest[struct{}]{
				nodes: d.allNodes,
				send: func(ctx context.Context, _ int) (struct{}, error) {
					requests.Add(1)
					<-ctx.Done()
					requests.Add(-1)
					return struct{}{}, ctx.Err()
				},
			})
			synctest.Wait()
			if n := requests.Load(); n != 3 {
				t.Fatalf("%d requests are under way, want 3", n)
			}
			cancel()
			synctest.Wait()
			if n := requests.Load(); n != 0 {
				t.Fatalf("%d requests are under way after the end of the caller's ctx", n)
			}
		})
	}
}
