package browser

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/memlock"
)

// A scene has the locks of a shop on an invented evening. Its clock is set forward, so
// making a scene takes only a moment.
type scene struct {
	*backend

	clockLag     atomic.Int64 // how far its clock is behind, in nanoseconds
	renewing     []driver.Claim
	nextRenewing int // the first of renewing that renews next
}

// shopClaims has the claims of a scene, and how long before now each came.
var shopClaims = []struct {
	ago   time.Duration
	claim driver.Claim
	dies  bool // the process does not renew
}{
	{26 * time.Hour, leader("leader:billing", "billing-1", 2218, "10.0.3.17:8443"), false},
	{25 * time.Hour, leader("leader:billing", "billing-2", 1904, "10.0.3.18:8443"), false},
	{21 * time.Hour, leader("leader:billing", "billing-3", 2051, "10.0.3.19:8443"), false},
	{14 * time.Minute, labeled(mutex("nightly-report", "reports-1", 4127), "job", "nightly-report", "attempt", "1"), false},
	{13 * time.Minute, labeled(mutex("nightly-report", "reports-2", 3380), "job", "nightly-report"), false},
	{9*time.Minute + 20*time.Second, permit("exports", "export-1", 811, 4), false},
	{6*time.Minute + 5*time.Second, permit("exports", "export-3", 790, 4), false},
	{3*time.Minute + 12*time.Second, labeled(mutex("migrate:orders", "deploy-7", 91), "release", "2026.47"), false},
	{3 * time.Minute, mutex("stock:eu", "worker-2", 1502), false},
	{2*time.Minute + 40*time.Second, mutex("stock:us", "worker-5", 1377), false},
	{2*time.Minute + 10*time.Second, mutex("stock:us", "worker-2", 1502), false},
	{2 * time.Minute, reader("catalog", "web-1", 640), false},
	{115 * time.Second, reader("catalog", "web-2", 655), false},
	{110 * time.Second, reader("catalog", "web-4", 702), false},
	{80 * time.Second, labeled(mutex("catalog", "importer-1", 2210), "feed", "prices.csv"), false},
	{64 * time.Second, mutex("nightly-report", "reports-3", 3512), false},
	{48 * time.Second, permit("exports", "export-2", 803, 4), false},
	{42 * time.Second, labeled(mutex("warm-cache", "web-3", 677), "region", "eu-west-1"), true},
	{17 * time.Second, mutex("invoice:48213", "billing-1", 2218), false},
	{8 * time.Second, mutex("invoice:48214", "billing-2", 1904), false},
}

func leader(name, host string, pid int, address string) driver.Claim {
	c := mutex(name, host, pid)
	c.Value = []byte(address)
	return c
}

func labeled(c driver.Claim, pairs ...string) driver.Claim {
	c.Owner.Labels = map[string]string{}
	for p := range slices.Chunk(pairs, 2) {
		c.Owner.Labels[p[0]] = p[1]
	}
	return c
}

func reader(name, host string, pid int) driver.Claim {
	c := mutex(name, host, pid)
	c.Weight = 1
	return c
}

func permit(name, host string, pid, of int) driver.Claim {
	c := mutex(name, host, pid)
	c.Weight, c.Limit = 1, of
	return c
}

// sceneEnd is the time before now at which a new scene stops, so that the dashboard sees
// the overdue lease before it is overdue.
const sceneEnd = 38 * time.Second

// newScene makes a scene up to sceneEnd before now; [scene.advance] makes the rest.
func newScene(t testing.TB) *scene {
	t.Helper()
	s := &scene{}
	s.backend = newBackend(t, &memlock.Options{Now: func() time.Time { return time.Now().Add(-time.Duration(s.clockLag.Load())) }})
	s.clockLag.Store(int64(27 * time.Hour))
	s.advance(sceneEnd)
	return s
}

// advance sets the clock forward to a time before now. Meanwhile new claims come, and
// processes renew.
func (s *scene) advance(ago time.Duration) {
	s.t.Helper()
	const step = 5 * time.Second
	for left := time.Duration(s.clockLag.Load()); left > ago; {
		next := max(ago, left-step)
		for _, e := range shopClaims {
			if e.ago <= left && e.ago > next {
				s.clockLag.Store(int64(e.ago))
				s.addClaim(e.claim, e.dies)
			}
		}
		left = next
		s.clockLag.Store(int64(left))
		s.renewThird()
	}
}

func (s *scene) addClaim(c driver.Claim, dies bool) {
	s.t.Helper()
	c.Token = driver.NewToken() // all scenes share the list
	s.sendClaim(c)
	if !dies {
		s.renewing = append(s.renewing, c)
	}
}

// renewThird renews the leases and the places of a third of the processes. A call
// every 5 s does what the processes would do.
func (s *scene) renewThird() {
	s.t.Helper()
	for i := s.nextRenewing; i < len(s.renewing); i += 3 {
		s.sendClaim(s.renewing[i])
	}
	s.nextRenewing = (s.nextRenewing + 1) % 3
}

// sendClaim claims a name, and accepts a place in the queue.
func (s *scene) sendClaim(c driver.Claim) {
	s.t.Helper()
	if _, err := s.others.Acquire(s.t.Context(), c); err != nil && !errors.Is(err, driver.ErrHeld) {
		s.t.Fatalf("%s: %v", c.Name, err)
	}
}
