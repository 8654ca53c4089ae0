package keepalive

import "time"

// A dueHeap is a heap with the item that is due first at its top. Each item stores its
// own index.
type dueHeap[T interface{ heapIndex() *int32 }] []dueItem[T]

type dueItem[T any] struct {
	at   time.Duration // since a start that the owner of the heap has chosen
	item T
}

// heaped is the part of each item that stores its index.
type heaped struct {
	index int32 // in the heap, from 1; 0 if the item is not in it
}

func (h *heaped) heapIndex() *int32 { return &h.index }

// put adds an item, or moves it to its new place.
func (h *dueHeap[T]) put(item T, at time.Duration) {
	i := int(*item.heapIndex()) - 1
	if i < 0 {
		i = len(*h)
		*h = append(*h, dueItem[T]{})
	}
	h.move(dueItem[T]{at, item}, i)
}

func (h *dueHeap[T]) remove(item T) {
	i, last := int(*item.heapIndex())-1, len(*h)-1
	moved := (*h)[last]
	clear((*h)[last:])
	*h = (*h)[:last]
	*item.heapIndex() = 0
	if i < last {
		h.move(moved, i)
	}
}

// move puts x at i, and then moves it up or down to its right place.
func (h dueHeap[T]) move(x dueItem[T], i int) {
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

func (h dueHeap[T]) set(i int, x dueItem[T]) {
	h[i] = x
	*x.item.heapIndex() = int32(i + 1)
}
