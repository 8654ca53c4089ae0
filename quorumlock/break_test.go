package quorumlock

import (
	"errors"
	"fmt"
	"testing"

	"github.com/pawl-go/pawl/driver"
)

// A node may have granted the next lease with a fence that another node had given to the
// lease before it. If that was not the final fence of the earlier lease, a break by that
// fence breaks no lease.
func TestBreakSparesTheNextHolder(t *testing.T) {
	const silent, none = -1, 0
	for _, test := range []struct {
		nodes []int // the fence of the only claim on each
		fence uint64
		found bool
		sure  bool
	}{
		{[]int{6, 6, 5}, 5, false, true},
		{[]int{6, 6, 5}, 6, true, true},
		{[]int{6, silent, 5}, 5, false, false},
		{[]int{6, silent, 5}, 6, true, true},
		{[]int{5, silent, 5}, 5, true, true},
		{[]int{5, silent, none}, 5, true, true},
		{[]int{7, 8, 5}, 5, true, true}, // two nodes were repaired
		{[]int{6, 6, 6}, 5, false, true},
		{[]int{6, 6, 6, 5, 5}, 5, false, true},
		{[]int{6, 6, silent, 5, 5}, 5, false, false},
		{[]int{6, 6, silent, 5, 5}, 6, true, true},
		{[]int{6, 7, 5, 5, 5}, 5, true, true},
		{[]int{none, silent, silent, 5, none}, 5, true, true},
		{[]int{none, none, none, 5, none}, 5, false, true},
	} {
		t.Run(fmt.Sprint(test.nodes, " by ", test.fence), func(t *testing.T) {
			d := &Driver{majority: len(test.nodes)/2 + 1}
			entries := make([]vote[driver.Entry], len(test.nodes))
			for i, fence := range test.nodes {
				var v vote[driver.Entry]
				switch {
				case fence == silent:
					v.err = errors.New("silent")
				case fence != none:
					v.value.Holders = []driver.Holder{{Fence: uint64(fence), Permits: driver.Exclusive}}
					v.value.Fence = uint64(fence)
				}
				entries[i] = v
			}
			fences, sure := d.claimWithFence(entries, test.fence)
			if (fences != nil) != test.found || sure != test.sure {
				t.Errorf("found %v, sure %t; want found %t, sure %t", fences, sure, test.found, test.sure)
			}
		})
	}
}
