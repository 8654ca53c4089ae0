package prove

import (
	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/cmd/pawl/prove/worker"
)

// A register is the resource that a lock protects. It has two numbers, and checks fences
// only for the first one.
type register struct {
	checked, plain uint64
	greatest       uint64 // the greatest fence seen
}

// serve handles one request. For a write it also returns a line for the history.
func (r *register) serve(q *worker.Ask, checks bool) (worker.Answer, *history.Write) {
	a := worker.Answer{Claim: q.Claim, Checked: r.checked, Plain: r.plain}
	if a.Stale = checks && q.Fence < r.greatest; !a.Stale {
		r.greatest = max(r.greatest, q.Fence)
	}
	if !q.Write {
		return a, nil
	}
	w := &history.Write{
		Claim: q.Claim, Name: q.Name, Fence: q.Fence, Stale: a.Stale,
		Read: q.Read, Before: r.checked, PlainRead: q.Plain, PlainBefore: r.plain,
	}
	r.plain = q.Plain + 1
	if !a.Stale {
		r.checked = q.Read + 1
		w.Accepted = true
	}
	return a, w
}
