package keepalive

import "time"

// A dueHeap is a heap with the renewal that is due first at its top. Each renewal stores
// its own index, plus 1; 0 means that it is not in the heap.
type dueHeap[L Lease] []dueItem[L]

type dueItem[L Lease] struct {
	at   time.Duration // since Renewals.began
	item *Renewal[L]
}

// put adds an item, or moves it to its new place.
func (h *dueHeap[L]) put(item *Renewal[L], at time.Duration) {
	i := int(item.index) - 1
	if i < 0 {
		i = len(*h)
		*h = append(*h, dueItem[L]{})
	}
	h.move(dueItem[L]{at, item}, i)
}

func (h *dueHeap[L]) remove(item *Renewal[L]) {
	i, last := int(item.index)-1, len(*h)-1
	moved := (*h)[last]
	clear((*h)[last:])
	*h = (*h)[:last]
	item.index = 0
	if i < last {
		h.move(moved, i)
	}
}

// move puts x at i, and then moves it up or down to its right place.
func (h dueHeap[L]) move(x dueItem[L], i int) {
	for parent := (i - 1) / 2; i > 0 && x.at < h[parent].at; parent = (i - 1) / 2 {
		h.set(i, h[parent])
		i = parent
	}
	for child := 2*i + 1; child < len(h); child = 2*i + 1 {
		if child+1 < len(h) && h[child+1].at < h[child].at {
			child++
		}
		if x.at <= h[child].at {
			break
		}
		h.set(i, h[child])
		i = child
	}
	h.set(i, x)
}

func (h dueHeap[L]) set(i int, x dueItem[L]) {
	h[i] = x
	x.item.index = int32(i + 1)
}
