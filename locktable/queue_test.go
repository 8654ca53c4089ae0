package locktable_test

import (
	"errors"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// A name takes no more holders and waiters than can be decoded.
func TestAClaimThatCouldNotBeDecodedIsRefused(t *testing.T) {
	const most = 1 << 20
	e := &locktable.Entry{Fence: most, Holders: make([]locktable.Holder, most)}
	for i := range e.Holders {
		e.Holders[i] = locktable.Holder{ClaimInfo: locktable.ClaimInfo{Fences: 1, Weight: 1, Limit: driver.Unlimited}, Fence: uint64(i + 1), Expires: start.Add(ttl)}
	}
	e.Holders[0].Token = tokenOf("a")
	_, err := e.Acquire(start, reader("b"), "")
	if held, ok := errors.AsType[*driver.HeldError](err); !ok || held.Position != 1 {
		t.Fatalf("the claim for one more lease is refused: %v; want position 1", err != nil)
	}
	if err := e.Release(start, &driver.LeaseRef{Token: tokenOf("a")}); err != nil || len(e.Signals) != 1 {
		t.Fatalf("release returns %v, and sends %d signals", err, len(e.Signals))
	}
	must(locktable.Decode(e.Append(nil)))(t)

	e = &locktable.Entry{Overflow: locktable.Overflow{Len: most}}
	e.Holders = []locktable.Holder{{ClaimInfo: locktable.ClaimInfo{Fences: 1, Weight: driver.Exclusive, Limit: driver.Unlimited}, Fence: 1, Expires: start.Add(ttl)}}
	_, err = e.Acquire(start, mutex("b"), "")
	if held, ok := errors.AsType[*driver.HeldError](err); !ok || held.Position != 0 || e.Overflow.Len != most {
		t.Errorf("the claim of one more waiter returns %+v", err)
	}
}

// A step checks its end after its last delay. After the end it changes nothing.
func TestALateStepChangesNothing(t *testing.T) {
	table := newByteTable()
	d := table.client("1")
	ctx, cancel := table.ctxEndingInNextStep(t)
	defer cancel()
	if _, err := d.Acquire(ctx, *mutex("a")); !errors.Is(err, ctx.Err()) || len(table.rows) != 0 {
		t.Errorf("the claim returns %v, and %d rows are stored", err, len(table.rows))
	}
	must(d.Acquire(t.Context(), *mutex("a")))(t)
	ctx, cancel = table.ctxEndingInNextStep(t)
	defer cancel()
	l := lease("a")
	l.HasEnd = true
	if err := d.Release(ctx, l); !errors.Is(err, ctx.Err()) {
		t.Errorf("the release returns %v", err)
	}
	if e, err := d.Inspect(t.Context(), "job"); err != nil || len(e.Holders) != 1 {
		t.Errorf("after the late release there are %d leases, %v; want 1", len(e.Holders), err)
	}
	ctx, cancel = table.ctxEndingInNextStep(t)
	defer cancel()
	l.HasEnd = false
	_ = d.Release(ctx, l)
	if e, err := d.Inspect(t.Context(), "job"); err != nil || len(e.Holders) != 0 {
		t.Errorf("after a release without an end there are %d leases, %v; want none", len(e.Holders), err)
	}
}
