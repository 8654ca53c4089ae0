package locktable_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

func withValue(c *driver.Claim, v string) *driver.Claim {
	c.Value = []byte(v)
	return c
}

func TestValue(t *testing.T) {
	runEach(t, map[string]func(l *fixture){
		"IsShownAsACopy": func(l *fixture) {
			l.wantGranted(withValue(mutex("a"), "1"))
			l.e.Public(l.now, "job").Value[0] = 'x'
			equal(l.t, "value", string(l.e.Value.Bytes), "1")
		},
		"IsForgottenOnlyAfterTheRetentionSinceTheLastLease": func(l *fixture) {
			for end, endLease := range map[string]func() (ended locktable.Instant){
				"released":                func() locktable.Instant { l.wantNoError(l.release("a", 0)); return l.now },
				"released and kept":       func() locktable.Instant { l.wantNoError(l.release("a", 25*sec)); return l.now.Add(5 * sec) },
				"expired":                 func() locktable.Instant { l.sleep(10 * sec); _ = l.release("b", 0); return l.now },
				"expired, without a step": func() locktable.Instant { return l.now.Add(10 * sec) },
				"broken":                  func() locktable.Instant { l.wantNoError(l.breakLease(l.e.Fence, 0, "boss")); return l.now },
			} {
				l.e = &locktable.Entry{}
				l.wantGranted(withValue(mutex("a"), "1"))
				l.sleep(20 * sec)
				ended := endLease()
				if l.e.Forgettable(ended.Add(5*sec)-1, 5*sec) || !l.e.Forgettable(ended.Add(30*sec), 5*sec) {
					l.t.Fatalf("%s at %d: forgotten too soon, or never: %s", end, ended, entryText(l.e))
				}
			}
		},
		"IsForgottenOnlyAfterTheRetentionSinceTheWrite": func(l *fixture) {
			l.wantGranted(with(withValue(mutex("a"), "1"), func(c *driver.Claim) { c.TTL = 10 * sec }))
			l.sleep(9 * sec)
			l.wantNoError(l.releaseRef(driver.LeaseRef{Token: tokenOf("a"), Value: []byte("2")}))
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

// The driver keeps a copy, because its caller may change the slice.
func TestTheTableKeepsACopyOfAValue(t *testing.T) {
	m := entryTable{newByteTable(), &locktable.Entry{}}
	d := locktable.New(m, "1")
	claim, l := withValue(mutex("a"), "grant"), lease("a")
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

// A request that writes a value has an end, even a renewal in a batch.
func TestALateRequestWithAValueWritesNothing(t *testing.T) {
	s := newByteTable()
	d := s.client("1")
	must(d.Acquire(t.Context(), *mutex("a")))(t)
	for _, late := range [][]driver.LeaseRef{{lease("a")}, {lease("b"), lease("a")}} {
		late[len(late)-1].Value = []byte("late")
		before := slices.Clone(s.rows["job"])
		ctx, cancel := s.ctxEndingInNextStep(t)
		_, err := d.Renew(ctx, late)
		cancel()
		if !errors.Is(err, ctx.Err()) || !slices.Equal(before, s.rows["job"]) {
			t.Errorf("%d late renewals return %v", len(late), err)
		}
	}
	l := lease("a")
	l.Value = []byte("late")
	ctx, cancel := s.ctxEndingInNextStep(t)
	defer cancel()
	if err := d.Release(ctx, l); !errors.Is(err, ctx.Err()) {
		t.Errorf("a late release returns %v", err)
	}
	if e, err := s.load("job"); err != nil || len(e.Holders) != 1 || e.Value.Bytes != nil {
		t.Errorf("the entry is %+v, %v", e, err)
	}
}
