package localqueue

// ranks computes the position of a waiter in logarithmic time. It is a Fenwick tree: the
// n-th number counts the waiters in the n&-n slots that end with n. Slots are numbered
// from 1 in the order of arrival, and are not reused; when too many are empty the queue
// makes new ranks.
type ranks []int32

// add returns the next slot.
func (r *ranks) add() (slot int32) {
	slot = int32(len(*r)) + 1
	count := int32(1)
	for i := slot - 1; i > slot-slot&-slot; i -= i & -i {
		count += (*r)[i-1]
	}
	*r = append(*r, count)
	return slot
}

func (r ranks) remove(slot int32) {
	for i := int(slot); i <= len(r); i += i & -i {
		r[i-1]--
	}
}

// upTo counts the waiters in the slots up to and including this one.
func (r ranks) upTo(slot int32) int {
	n := 0
	for i := slot; i > 0; i -= i & -i {
		n += int(r[i-1])
	}
	return n
}
