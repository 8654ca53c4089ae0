package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/etcdtest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// A turn is the time for which a client believed that it held a name.
type turn struct {
	fence    uint64
	from, to time.Time // by the monotonic clock of this process
}

// turns are all turns of a name. The test judges by nothing else.
type turns struct {
	mu  sync.Mutex
	all []turn
}

func (ts *turns) add(t turn) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.all = append(ts.all, t)
}

func (ts *turns) count() int {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return len(ts.all)
}

// goOn wants some more turns to come.
func (ts *turns) goOn(t *testing.T, after string) {
	t.Helper()
	had := ts.count()
	for began := time.Now(); ts.count() < had+4; time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > hang {
			t.Fatalf("nobody is served after %s", after)
		}
	}
}

// judge wants one holder at a time, and fences that rise.
func (ts *turns) judge() (wrong []string) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	slices.SortFunc(ts.all, func(a, b turn) int { return a.from.Compare(b.from) })
	for i, now := range ts.all[1:] {
		last := ts.all[i]
		if now.from.Before(last.to) {
			wrong = append(wrong, fmt.Sprintf("two believed for %v: fences %d and %d", last.to.Sub(now.from), last.fence, now.fence))
		}
		if now.fence <= last.fence {
			wrong = append(wrong, fmt.Sprintf("fence %d after %d", now.fence, last.fence))
		}
	}
	return wrong
}

func TestTheJudgeOfTurnsSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	began := time.Now()
	at := func(fence uint64, from, to time.Duration) turn { return turn{fence, began.Add(from), began.Add(to)} }
	for want, ts := range map[int]*turns{
		0: {all: []turn{at(2, 5, 9), at(1, 0, 5)}},
		1: {all: []turn{at(1, 0, 5), at(2, 4, 9)}},
		2: {all: []turn{at(1, 0, 5), at(1, 4, 9)}},
	} {
		if wrong := ts.judge(); len(wrong) != want {
			t.Errorf("%q; want %d", wrong, want)
		}
	}
}

// takesTurns takes a name again and again, through a client of its own, until the test
// ends. It holds it for a moment, or for longer than a lease lasts.
func (ts *turns) takesTurns(t *testing.T, url string) {
	t.Helper()
	c := opened(t, url)
	life, end := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() { end(); <-done })
	go func() {
		defer close(done)
		for life.Err() == nil {
			ts.take(life, c)
		}
	}()
}

func (ts *turns) take(life context.Context, c *pawl.Client) {
	ctx, cancel := context.WithTimeout(life, 5*time.Second)
	defer cancel()
	l, err := c.Mutex("job", pawl.WithTTL(2*time.Second)).Lock(ctx)
	if err != nil {
		select {
		case <-life.Done():
		case <-time.After(50 * time.Millisecond):
		}
		return
	}
	from, long := time.Now(), time.Duration(rand.Int64N(int64(150*time.Millisecond)))
	if rand.IntN(8) == 0 {
		long *= 20
	}
	select {
	case <-l.Done():
	case <-time.After(long):
	}
	ts.add(turn{l.Fence(), from, time.Now()})
	_ = l.Release(ctx)
}

// opened is a client as users open it.
func opened(t *testing.T, url string) *pawl.Client {
	t.Helper()
	c, err := pawl.Open(t.Context(), url, nil)
	noError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Several clients take one name in turn, each through one member or through all, while
// members are stopped, killed, cut off, compacted and defragmented.
func TestOneAtATimeOnBadDays(t *testing.T) {
	nightly(t, "it is a storm on a cluster")
	t.Parallel()
	c := etcdtest.Setup{Members: 3, Wires: true}.Start(t)
	admin := client(t, c.Addrs()...)
	ts := &turns{}
	for _, url := range []string{c.URL(), c.URL(), "etcd://" + c.Addrs()[0], "etcd://" + c.Addrs()[1], "etcd://" + c.Addrs()[2]} {
		ts.takesTurns(t, url)
	}
	ts.goOn(t, "the beginning")
	for _, day := range []struct {
		name string
		bad  func() (heal func())
	}{
		{"the leader stopped", func() func() { m := leader(t, c, admin); m.Pause(); return m.Resume }},
		{"the leader killed", func() func() { m := leader(t, c, admin); m.Kill(); return m.Run }},
		{"a follower killed", func() func() { m := follower(t, c, admin); m.Kill(); return m.Run }},
		{"the leader cut off", func() func() { m := leader(t, c, admin); c.Cut(m, id(t, admin, m)); return c.Heal }},
		{"a follower cut off", func() func() { m := follower(t, c, admin); c.Cut(m, id(t, admin, m)); return c.Heal }},
		{"compacted and defragmented", func() func() { keepHouse(t, c, admin); return func() {} }},
		{"another leader chosen", func() func() { moveLeader(t, c, admin); return func() {} }},
	} {
		heal := day.bad()
		ts.goOn(t, day.name)
		heal()
		ts.goOn(t, day.name+", and that was over")
	}
	for _, wrong := range ts.judge() {
		t.Error(wrong)
	}
	t.Logf("%d turns", ts.count())
}

// A holder whose member is cut off learns that its lease is lost before another client
// has the name. Meanwhile its requests fail with an error that says why.
func TestAHolderIsCutOffWithItsMember(t *testing.T) {
	nightly(t, "it starts a cluster")
	t.Parallel()
	c := etcdtest.Setup{Members: 3, Wires: true}.Start(t)
	admin := client(t, c.Addrs()...)
	m := leader(t, c, admin)
	rest := slices.DeleteFunc(c.Addrs(), func(a string) bool { return a == m.Addr })
	apart, others := opened(t, "etcd://"+m.Addr), opened(t, "etcd://"+rest[0]+","+rest[1])
	lock := func(c *pawl.Client, within time.Duration) (*pawl.Lease, error) {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		for { // members that are busy choose a leader later than a client waits for one
			l, err := c.Mutex("job", pawl.WithTTL(3*time.Second)).Lock(ctx)
			if err == nil || ctx.Err() != nil || !errors.Is(err, pawl.ErrUnavailable) {
				return l, err
			}
		}
	}
	old, err := lock(apart, hang)
	noError(t, err)
	c.Cut(m, id(t, admin, m))
	believed := make(chan time.Time, 1)
	go func() { // when the holder believed last that it holds
		var last time.Time
		for now := time.Now(); old.Err() == nil; now = time.Now() {
			last = now
			time.Sleep(2 * time.Millisecond)
		}
		believed <- last
	}()
	next, err := lock(others, hang)
	at := time.Now()
	noError(t, err)
	rises(t, old.Fence(), next.Fence())
	select {
	case last := <-believed:
		if last.After(at) {
			t.Errorf("the holder believed so %v after another one had the name", last.Sub(at))
		}
	case <-time.After(hang):
		t.Fatal("the holder was not told")
	}
	<-old.Done()
	if !errors.Is(context.Cause(old.Context()), pawl.ErrLost) {
		t.Errorf("it was told %v; want ErrLost", context.Cause(old.Context()))
	}
	if l, err := lock(apart, 2*time.Second); err == nil {
		t.Errorf("granted by one of three, fence %d", l.Fence())
	}
	c.Heal()
	// The members may choose another leader first, or the machine may be slow.
	if err := next.Release(t.Context()); err != nil && !errors.Is(err, pawl.ErrUnavailable) && !errors.Is(err, pawl.ErrLost) {
		t.Error(err)
	}
	last, err := lock(apart, hang)
	noError(t, err)
	rises(t, next.Fence(), last.Fence())
}

// follower returns a member that does not lead.
func follower(t *testing.T, c *etcdtest.Cluster, admin *clientv3.Client) *etcdtest.Member {
	t.Helper()
	leads := leader(t, c, admin)
	for _, m := range c.Members {
		if m != leads {
			return m
		}
	}
	t.Fatal("there is one member only")
	return nil
}

// id returns the ID of a member.
func id(t *testing.T, admin *clientv3.Client, m *etcdtest.Member) uint64 {
	t.Helper()
	s, err := admin.Status(brief(t), m.Addr)
	noError(t, err)
	return s.Header.GetMemberId()
}

// keepHouse compacts all revisions but the last, and defragments each member.
func keepHouse(t *testing.T, c *etcdtest.Cluster, admin *clientv3.Client) {
	t.Helper()
	compact(t, admin)
	for _, m := range c.Members {
		if _, err := admin.Defragment(brief(t), m.Addr); err != nil {
			t.Error(err)
		}
	}
}

func compact(t *testing.T, admin *clientv3.Client) {
	t.Helper()
	now, err := admin.Get(brief(t), "x")
	if err == nil {
		_, err = admin.Compact(brief(t), now.Header.GetRevision(), clientv3.WithCompactPhysical())
	}
	if err != nil {
		t.Error(err)
	}
}

// moveLeader makes another member the leader.
func moveLeader(t *testing.T, c *etcdtest.Cluster, admin *clientv3.Client) {
	t.Helper()
	leads, next := leader(t, c, admin), follower(t, c, admin)
	_, err := client(t, leads.Addr).MoveLeader(brief(t), id(t, admin, next))
	if err != nil {
		t.Error(err)
	}
}

// Connections end all the time, in the middle of requests and of their answers.
func TestConnectionsThatAreCutInTheMiddle(t *testing.T) {
	nightly(t, "it is a storm")
	t.Parallel()
	c := etcdtest.Start(t, 1)
	p := proxy(t, c)
	servertest.Storm(t, []driver.Driver{openDriver(t, "etcd://"+p.Addr), openDriver(t, "etcd://"+p.Addr), openDriver(t, "etcd://"+p.Addr)}, p.Heal)
}
