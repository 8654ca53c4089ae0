package overview

import "slices"

// circles finds circles of blocks, but not all: each block that is in any circle is in
// one of those found, up to mostCircles. A block is in a circle if both of its processes
// are in one component. It searches at most mostCircles times, and each search sees each
// block once at most.
func circles(all []Block) (found [][]Block) {
	next := map[string][]int{} // the blocks of each waiter, as indexes into all
	for i, x := range all {
		next[x.Waiter] = append(next[x.Waiter], i)
	}
	component, shown := components(all, next), make([]bool, len(all))
	for i, x := range all {
		if shown[i] || component[x.Waiter] != component[x.Holder] {
			continue
		}
		if len(found) == mostCircles {
			break
		}
		circle := []Block{x}
		for _, at := range path(all, next, component, x.Holder, x.Waiter) {
			shown[at] = true
			circle = append(circle, all[at])
		}
		found = append(found, circle)
	}
	return found
}

// components numbers the strongly connected components: two processes have the same
// number if each keeps the other waiting, over others perhaps. This is the algorithm of
// R. Tarjan, "Depth-first search and linear graph algorithms", 1972, as R. Sedgewick
// shortened it.
func components(all []Block, next map[string][]int) map[string]int {
	low, component := map[string]int{}, map[string]int{} // numbers from 1
	var open []string                                    // seen, and in no component yet
	var visit func(p string)
	visit = func(p string) {
		number, at := len(low)+1, len(open)
		low[p] = number
		open = append(open, p)
		for _, i := range next[p] {
			q := all[i].Holder
			if low[q] == 0 {
				visit(q)
			}
			if component[q] == 0 {
				low[p] = min(low[p], low[q])
			}
		}
		if low[p] == number { // p is the first of its component, the rest is behind it
			for _, q := range open[at:] {
				component[q] = number
			}
			open = open[:at]
		}
	}
	for _, x := range all {
		if low[x.Waiter] == 0 {
			visit(x.Waiter)
		}
	}
	return component
}

// path returns a shortest path of blocks between two processes of one component.
func path(all []Block, next map[string][]int, component map[string]int, from, to string) (blocks []int) {
	by := map[string]int{from: -1} // the block by which the search came to a process
	for queue := []string{from}; queue[0] != to; queue = queue[1:] {
		for _, i := range next[queue[0]] {
			q := all[i].Holder
			if _, seen := by[q]; !seen && component[q] == component[to] {
				by[q] = i
				queue = append(queue, q)
			}
		}
	}
	for p := to; p != from; p = all[by[p]].Waiter {
		blocks = append(blocks, by[p])
	}
	slices.Reverse(blocks)
	return blocks
}
