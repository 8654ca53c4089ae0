package locktable_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

func writing(c *driver.Claim, v string) *driver.Claim {
	c.Value = []byte(v)
	return c
}

// rising is a claim that is granted only while the value is below what it writes.
func rising(c *driver.Claim, v string) *driver.Claim {
	c.Value, c.ValueBelow = []byte(v), []byte(v)
	return c
}

// keeps wants the name to keep a value that was written under this fence.
func (l *lab) keeps(v string, fence uint64) {
	l.t.Helper()
	if got := l.e.Value; got.Bytes == nil || string(got.Bytes) != v || got.Fence != fence {
		l.t.Fatalf("the value is %q, of fence %d; want %q, of %d", got.Bytes, got.Fence, v, fence)
	}
}

func (l *lab) valueNotBelow(c *driver.Claim, v string) {
	l.t.Helper()
	_, err := l.acquire(c)
	refused, ok := errors.AsType[*driver.ValueNotBelowError](err)
	if !ok || string(refused.Value) != v || refused.Name != c.Name {
		l.t.Fatalf("%s is answered %v; want it refused for the value %q", whose(c.Token), err, v)
	}
}

func TestValue(t *testing.T) {
	each(t, map[string]func(l *lab){
		"IsComparedAsBytes": func(l *lab) {
			for _, v := range []string{"", "\x00", "\x00\x00", "10", "9", "9\x00", "\x7f", "\x80", "\xff", "\xff\x00"} {
				l.granted(rising(mutex("a"), v))
				l.ok(l.release("a", 0))
				l.valueNotBelow(rising(mutex("b"), v), v)
			}
		},
		"IsRaisedWithTheFenceOfItsLease": func(l *lab) {
			g := l.granted(writing(mutex("a"), "1"))
			raised, err := l.raise("a", g.Fence+7)
			l.ok(err)
			l.keeps("1", raised)
			l.ok(l.release("a", 0))
			b := l.granted(mutex("b"))
			_, err = l.raise("b", b.Fence+7)
			l.ok(err)
			l.keeps("1", raised)
		},
		"IsWrittenByTheFirstRaiseOnly": func(l *lab) {
			l.granted(writing(mutex("a"), "1"))
			l.ok(l.release("a", 0))
			g := l.granted(mutex("b"))
			raise := func(v string, fence uint64) {
				_, err := l.e.Raise(l.now, &driver.LeaseRef{Token: tokenOf("b"), Value: []byte(v)}, fence)
				l.ok(err)
			}
			raise("2", g.Fence)
			l.keeps("2", g.Fence)
			raise("3", g.Fence+1)
			l.keeps("2", g.Fence+1)
			l.ok(l.renews(driver.LeaseRef{Token: tokenOf("b"), TTL: ttl, Value: []byte("4")}))
			raise("5", g.Fence+1)
			l.keeps("4", g.Fence+1)
		},
		"OfALeaseThatHasWrittenIsNotWrittenByARaiseAlthoughOthersWroteSince": func(l *lab) {
			l.granted(writing(reader("a"), "1"))
			g := l.granted(writing(reader("b"), "2"))
			got, err := l.e.Raise(l.now, &driver.LeaseRef{Token: tokenOf("a"), Value: []byte("1")}, g.Fence+5)
			l.ok(err)
			equal(l.t, "raised", got, g.Fence+5)
			l.keeps("2", g.Fence)
		},
		"IsShownWithItsFence": func(l *lab) {
			g := l.granted(writing(mutex("a"), "1"))
			shown := l.e.Public(l.now, "job")
			equal(l.t, "value", string(shown.Value), "1")
			equal(l.t, "its fence", shown.ValueFence, g.Fence)
			shown.Value[0] = 'x'
			l.keeps("1", g.Fence)
			equal(l.t, "no value is nil", (&locktable.Entry{}).Public(l.now, "job").Value == nil, true)
		},
		"IsForgottenOnlyAWhileAfterTheLastLease": func(l *lab) {
			for end, how := range map[string]func() (ended locktable.Instant){
				"released":                  func() locktable.Instant { l.ok(l.release("a", 0)); return l.now },
				"released and kept":         func() locktable.Instant { l.ok(l.release("a", 25*sec)); return l.now.Add(5 * sec) },
				"expired":                   func() locktable.Instant { l.sleep(10 * sec); _ = l.release("b", 0); return l.now },
				"expired, which nobody saw": func() locktable.Instant { return l.now.Add(10 * sec) },
				"broken":                    func() locktable.Instant { l.ok(l.breaks(l.e.Fence, 0, "boss")); return l.now },
			} {
				l.e = &locktable.Entry{}
				l.granted(writing(mutex("a"), "1"))
				l.sleep(20 * sec)
				ended := how()
				if l.e.Forgettable(ended.Add(5*sec)-1, 5*sec) || !l.e.Forgettable(ended.Add(30*sec), 5*sec) {
					l.t.Fatalf("%s at %d: forgotten too soon, or never: %s", end, ended, show(l.e))
				}
			}
		},
		"IsForgottenOnlyAWhileAfterItWasWritten": func(l *lab) {
			l.granted(with(writing(mutex("a"), "1"), func(c *driver.Claim) { c.TTL = 10 * sec }))
			l.sleep(9 * sec)
			l.ok(l.releases(driver.LeaseRef{Token: tokenOf("a"), Value: []byte("2")}))
			written := l.now
			equal(l.t, "ends", l.e.Ends(), written)
			for _, x := range []struct {
				at     locktable.Instant
				forget bool
			}{{written.Add(5*sec) - 1, false}, {written.Add(5 * sec), true}} {
				equal(l.t, "forgettable", l.e.Forgettable(x.at, 5*sec), x.forget)
				equal(l.t, "idle", l.e.Idle(x.at), false)
			}
		},
	})
}

// The driver keeps a copy, because its caller may change what it gave.
func TestTheTableKeepsACopyOfAValue(t *testing.T) {
	m := memory{newShelf(), &locktable.Entry{}}
	d := locktable.New(m, "1")
	claim, l := writing(mutex("a"), "grant"), lease("a")
	must(d.Acquire(t.Context(), *claim))(t)
	claim.Value[0] = 'x'
	equal(t, "value", string(m.e.Value.Bytes), "grant")
	l.Value = []byte("renewal")
	must(d.Renew(t.Context(), []driver.LeaseRef{l}))(t)
	l.Value[0] = 'x'
	equal(t, "value", string(m.e.Value.Bytes), "renewal")
	must(d.RaiseFence(t.Context(), l, m.e.Fence))(t)
	l.Value = []byte("release")
	noError(t, d.Release(t.Context(), l))
	l.Value[0] = 'x'
	equal(t, "value", string(m.e.Value.Bytes), "release")
}

// A request that writes a value has an end, and so has a renewal in a batch.
func TestARenewalWithAValueThatComesAfterItsEndWritesNothing(t *testing.T) {
	s := newShelf()
	d := s.client("1")
	must(d.Acquire(t.Context(), *mutex("a")))(t)
	for _, late := range [][]driver.LeaseRef{{lease("a")}, {lease("b"), lease("a")}} {
		late[len(late)-1].Value = []byte("late")
		before := slices.Clone(s.rows["job"])
		ctx, cancel := s.late(t)
		_, err := d.Renew(ctx, late)
		cancel()
		if !errors.Is(err, ctx.Err()) || !slices.Equal(before, s.rows["job"]) {
			t.Errorf("%d renewals that come too late are answered %v", len(late), err)
		}
	}
	l := lease("a")
	l.Value = []byte("late")
	ctx, cancel := s.late(t)
	defer cancel()
	if err := d.Release(ctx, l); !errors.Is(err, ctx.Err()) {
		t.Errorf("a release that comes too late is answered %v", err)
	}
	if e, err := s.load("job"); err != nil || len(e.Holders) != 1 || e.Value.Bytes != nil {
		t.Errorf("the entry is %+v, %v", e, err)
	}
}
