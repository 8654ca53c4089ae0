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
	runEach(t, map[string]func(fx *fixture){
		"IsShownAsACopy": func(fx *fixture) {
			fx.wantGranted(withValue(mutex("a"), "1"))
			fx.entry.Public(fx.now, "job").Value[0] = 'x'
			equal(fx.t, "value", string(fx.entry.Value.Bytes), "1")
		},
		"IsForgottenOnlyAfterTheRetentionSinceTheLastLease": func(fx *fixture) {
			for end, endLease := range map[string]func() (ended locktable.Instant){
				"released":                func() locktable.Instant { fx.wantNoError(fx.release("a", 0)); return fx.now },
				"released and kept":       func() locktable.Instant { fx.wantNoError(fx.release("a", 25*sec)); return fx.now.Add(5 * sec) },
				"expired":                 func() locktable.Instant { fx.sleep(10 * sec); _ = fx.release("b", 0); return fx.now },
				"expired, without a step": func() locktable.Instant { return fx.now.Add(10 * sec) },
				"broken":                  func() locktable.Instant { fx.wantNoError(fx.breakLease(fx.entry.Fence, 0, "boss")); return fx.now },
			} {
				fx.entry = &locktable.Entry{}
				fx.wantGranted(withValue(mutex("a"), "1"))
				fx.sleep(20 * sec)
				ended := endLease()
				if fx.entry.Forgettable(ended.Add(5*sec)-1, 5*sec) || !fx.entry.Forgettable(ended.Add(30*sec), 5*sec) {
					fx.t.Fatalf("%s at %d: forgotten too soon, or never: %s", end, ended, entryText(fx.entry))
				}
			}
		},
		"IsForgottenOnlyAfterTheRetentionSinceTheWrite": func(fx *fixture) {
			fx.wantGranted(with(withValue(mutex("a"), "1"), func(c *driver.Claim) { c.TTL = 10 * sec }))
			fx.sleep(9 * sec)
			fx.wantNoError(fx.releaseRef(driver.LeaseRef{Token: tokenOf("a"), Value: []byte("2")}))
			written := fx.now
			equal(fx.t, "ends", fx.entry.Ends(), written)
			for _, x := range []struct {
				at     locktable.Instant
				forget bool
			}{{written.Add(5*sec) - 1, false}, {written.Add(5 * sec), true}} {
				equal(fx.t, "forgettable", fx.entry.Forgettable(x.at, 5*sec), x.forget)
				equal(fx.t, "idle", fx.entry.Idle(x.at), false)
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
	table := newByteTable()
	d := table.client("1")
	must(d.Acquire(t.Context(), *mutex("a")))(t)
	for _, late := range [][]driver.LeaseRef{{lease("a")}, {lease("b"), lease("a")}} {
		late[len(late)-1].Value = []byte("late")
		before := slices.Clone(table.rows["job"])
		ctx, cancel := table.ctxEndingInNextStep(t)
		_, err := d.Renew(ctx, late)
		cancel()
		if !errors.Is(err, ctx.Err()) || !slices.Equal(before, table.rows["job"]) {
			t.Errorf("%d late renewals return %v", len(late), err)
		}
	}
	l := lease("a")
	l.Value = []byte("late")
	ctx, cancel := table.ctxEndingInNextStep(t)
	defer cancel()
	if err := d.Release(ctx, l); !errors.Is(err, ctx.Err()) {
		t.Errorf("a late release returns %v", err)
	}
	if e, err := table.load("job"); err != nil || len(e.Holders) != 1 || e.Value.Bytes != nil {
		t.Errorf("the entry is %+v, %v", e, err)
	}
}
