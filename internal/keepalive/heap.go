package keepalive

import (
	"container/heap"
	"time"
)

// byDue is a heap: the renewal that is due first is at the top. Each knows its own index.
type byDue[L Lease] []*Renewal[L]

// put adds x, or moves it to its new place.
func (h *byDue[L]) put(x *Renewal[L]) {
	if x.index == 0 {
		heap.Push(h, x)
	} else {
		heap.Fix(h, int(x.index)-1)
	}
}

func (h *byDue[L]) remove(x *Renewal[L]) { heap.Remove(h, int(x.index)-1) }

// makeAllDue makes all renewals due.
func (h *byDue[L]) makeAllDue(at time.Duration) {
	for _, x := range *h {
		x.at = at
	}
	heap.Init(h)
}

// The five methods of container/heap.

func (h byDue[L]) Len() int           { return len(h) }
func (h byDue[L]) Less(i, j int) bool { return h[i].at < h[j].at }
func (h byDue[L]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = int32(i+1), int32(j+1)
}

// Push adds a renewal at the end.
func (h *byDue[L]) Push(x any) {
	r := x.(*Renewal[L]) //nolint:forcetypeassert // container/heap's signature; only put calls it
	*h = append(*h, r)
	r.index = int32(len(*h))
}

// Pop removes the last renewal.
func (h *byDue[L]) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	x.index = 0
	return x
}
