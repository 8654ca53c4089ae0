package locktable_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

func TestAnErrorOfTheTableBecomesADriverErrorWithOpAndName(t *testing.T) {
	table := newByteTable()
	d := table.client("1")
	_, _ = d.Acquire(t.Context(), *mutex("a"))
	typed := &driver.Error{Backend: "shelf in the cellar", Op: "?", Hint: "look there", Permanent: true, Err: io.ErrUnexpectedEOF}
	tableTimeout := context.DeadlineExceeded
	for _, table.err = range []error{io.ErrUnexpectedEOF, tableTimeout, typed} {
		for op, err := range callAll(t.Context(), d) {
			var e *driver.Error
			if !errors.As(err, &e) || string(e.Op) != op || e.Name != "job" || errors.Is(err, io.ErrUnexpectedEOF) == (table.err == tableTimeout) {
				t.Errorf("%s is answered %#v", op, err)
				continue
			}
			if table.err != error(typed) && (e.Backend != "shelf" || e.Permanent) {
				t.Errorf("%s is answered %+v", op, *e)
			}
			if table.err == error(typed) && (e.Backend != typed.Backend || e.Hint != typed.Hint || !e.Permanent || e == typed) {
				t.Errorf("%s returns %+v, and the table returned %+v", op, *e, *typed)
			}
		}
	}
	equal(t, "op of the table's own error", typed.Op, "?")
}

func TestACtxErrorIsReturnedUnchanged(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	table := newByteTable()
	for op, err := range callAll(ctx, table.client("1")) {
		if err != context.Canceled {
			t.Errorf("%s is answered %v", op, err)
		}
	}
	equal(t, "rows", len(table.rows), 0)
}

func TestATableIsClosedOnce(t *testing.T) {
	table := newByteTable()
	d := table.client("1")
	equal(t, "first Close", d.Close(), io.ErrClosedPipe)
	equal(t, "second Close", d.Close(), nil)
	equal(t, "closings of the table", table.closes, 1)
}

// A call that fails because the driver was closed meanwhile returns ErrClosed.
func TestACallDuringCloseReturnsErrClosed(t *testing.T) {
	c := &closingTable{byteTable: newByteTable()}
	d := locktable.New(c, "1")
	c.duringUpdate = d.Close
	if _, err := d.Acquire(t.Context(), *mutex("a")); err != driver.ErrClosed {
		t.Errorf("Acquire returns %v, want ErrClosed", err)
	}
}

// The driver and its callers must not share maps.
func TestLabelsAreCopied(t *testing.T) {
	labels := map[string]string{"k": "v"}
	stored := &locktable.Entry{}
	d := locktable.New(entryTable{newByteTable(), stored}, "1")
	claim := func(who string) driver.Claim {
		return *with(mutex(who), func(c *driver.Claim) { c.Owner.Labels = labels })
	}
	must(d.Acquire(t.Context(), claim("a")))(t)
	_, err := d.Acquire(t.Context(), claim("b"))
	held, ok := errors.AsType[*driver.HeldError](err)
	if !ok {
		t.Fatalf("the second is answered %v", err)
	}
	held.Holder.Owner.Labels["k"] = "changed by a reader"
	equal(t, "holder's label", stored.Holders[0].Owner.Labels["k"], "v")
	noError(t, d.Break(t.Context(), "job", stored.Fence, time.Minute, driver.Owner{Labels: labels}))
	labels["k"] = "changed"
	equal(t, "waiter's label", stored.Queue[0].Owner.Labels["k"], "v")
	equal(t, "breaker's label", stored.Broken[0].By.Labels["k"], "v")
}
