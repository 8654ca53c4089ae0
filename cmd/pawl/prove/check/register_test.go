package check

import (
	"testing"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// wrote returns an accepted write of claim id to the register of the mutex.
func wrote(id, at int64, fence, read uint64, change ...func(*history.Write)) *history.Write {
	x := &history.Write{
		At: ms(at), Claim: id, Name: mutex, Fence: fence,
		Read: read, Before: read, Accepted: true, PlainRead: read, PlainBefore: read,
	}
	for _, f := range change {
		f(x)
	}
	return x
}

func TestRegister(t *testing.T) {
	stale := func(x *history.Write) { x.Accepted, x.Stale, x.Before = false, true, x.Before+1 }
	changed := func(x *history.Write) { x.Accepted, x.Before = false, x.Before+1 }
	plain := func(x *history.Write) { x.PlainBefore++ }
	holders := []*history.Claim{
		hold(1, 0, 10, 20, 1, lost(15, 21, 21, 40)), hold(2, 5, 19, 30, 2), hold(3, 31, 32, 40, 3),
	}
	stop := fault(history.Stop, 1, 15, 21)
	with := func(parts ...any) []any { return append([]any{holders, stop}, parts...) }
	checkCases(t, []historyCase{
		{"each adds one", with(wrote(1, 12, 1, 0), wrote(2, 22, 2, 1), wrote(3, 33, 3, 2)), ""},
		{"a stale write is refused", with(wrote(2, 20, 2, 0), wrote(1, 22, 1, 0, stale), wrote(3, 33, 3, 1)), ""},
		{"a stale write is accepted", with(wrote(2, 20, 2, 0), wrote(1, 22, 1, 1)), StaleAccepted},
		{"a refused write still makes older writes stale", with(wrote(2, 20, 2, 3, changed), wrote(1, 22, 1, 0)),
			"register stale-accepted"},
		{"an update is lost", with(wrote(1, 12, 1, 0), wrote(2, 22, 2, 0)), Register},
		{"a number that the register never had", with(wrote(1, 12, 1, 0), wrote(2, 22, 2, 2)), Register},
		{"the register had changed", with(wrote(1, 12, 1, 0), wrote(2, 22, 2, 0, changed)), Register},
		{"another claim's fence", with(wrote(1, 12, 7, 0)), Register},
		{"a write without a claim", with(wrote(9, 12, 1, 0)), Register},

		{"a plain update lost by a late write", with(wrote(1, 18, 1, 0, plain)), ""},
		{"a plain update lost before all faults", with(wrote(1, 12, 1, 0, plain)), PlainLostInCalm},
		{"a plain update lost after a late write of another holder that was paused", []any{
			hold(2, 5, 19, 30, 2, lost(15, 0, 0, 40)), hold(3, 0, 10, 40, 3), fault(history.Pause, 2, 6, 25), fault(history.Stop, 9, 9000, 9001),
			wrote(2, 26, 2, 0), wrote(3, 28, 3, 1, plain),
		}, ""},
		{"a plain update lost after the order of a fault without a reported effect", []any{
			holders, &history.Fault{Kind: history.Overstay, Worker: 1, From: ms(11), To: ms(12)}, wrote(1, 14, 1, 0, plain),
		}, ""},
		{"readers exclude no reader", []any{
			hold(1, 0, 10, 20, 1, reader), wrote(1, 12, 1, 0, plain, func(x *history.Write) { x.Name = rw }),
		}, ""},
	})
}

func TestRegisterCounts(t *testing.T) {
	stale := func(x *history.Write) { x.Accepted, x.Stale = false, true }
	plain := func(x *history.Write) { x.PlainBefore++ }
	v := verdict(t, hold(1, 0, 10, 20, 1), hold(2, 21, 22, 30, 2), fault(history.Stop, 1, 0, 1),
		wrote(1, 12, 1, 0), wrote(2, 23, 2, 1), wrote(1, 24, 1, 0, stale, plain))
	if n := v.Numbers; n.Writes != 2 || n.Stale != 1 || n.PlainLost != 1 {
		t.Errorf("%d writes, %d stale, %d lost; want 2, 1 and 1", n.Writes, n.Stale, n.PlainLost)
	}
}
