package overview

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// Process returns what identifies a process: its host and pid, or otherwise its client's
// id. Owners state these themselves, so they are no proof.
func Process(o pawl.Owner) string {
	if o.Host != "" && o.PID != 0 {
		return fmt.Sprintf("%s:%d", o.Host, o.PID)
	}
	return cmp.Or(o.Client, o.Host)
}

// A Block is a process that waits for a name which another process holds.
type Block struct {
	Waiter string   // the process that waits
	Holds  []string // the names that it holds meanwhile, in byte order
	Name   string   // the name for which it waits
	Holder string   // the process that holds Name
}

// Blocks lists each process that waits for one name while it holds another. It leaves out
// a process that also holds the name for which it waits, as a reader or with a permit,
// because that process waits for itself.
type Blocks struct {
	All []Block // 10 000 at most

	// Deadlocks are circles, 100 at most: each block's Holder is the Waiter of the next,
	// and the last Holder is the first Waiter. If each process does one thing at a time,
	// no process of a circle goes on until one of them gives up. Up to the limit, each
	// block that is in any circle is in one of these. If any of several holders could
	// release the permit for which a process waits, that wait is in no circle.
	Deadlocks [][]Block
}

// The limits of Blocks. Users of the locks can make any number of them.
const (
	maxBlocks  = 10_000
	maxCircles = 100
)

// Blocks finds the blocks of a view, once.
func (v *View) Blocks() *Blocks {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.blocks == nil {
		v.blocks = findBlocks(v.Rows)
	}
	return v.blocks
}

// Of returns the blocks of processes that wait for a name, or hold it while they wait.
func (b *Blocks) Of(name string) (all []Block) {
	for _, x := range b.All {
		if x.Name == name || containsName(x.Holds, name) {
			all = append(all, x)
		}
	}
	return all
}

// DeadlocksOf returns the circles that include a name.
func (b *Blocks) DeadlocksOf(name string) (all [][]Block) {
	for _, circle := range b.Deadlocks {
		if slices.ContainsFunc(circle, func(x Block) bool { return x.Name == name }) {
			all = append(all, circle)
		}
	}
	return all
}

func findBlocks(rows []*Row) *Blocks {
	holds := map[string][]string{} // names in byte order, by process
	for _, r := range rows {
		for i := range r.Holders {
			p := Process(r.Holders[i].Owner)
			if n := len(holds[p]); n == 0 || holds[p][n-1] != r.Name {
				holds[p] = append(holds[p], r.Name)
			}
		}
	}
	b, certain := &Blocks{}, []Block{}
	for _, r := range rows {
		seen, shares := map[string]bool{}, sharesOf(r)
		for i := range r.Waiters {
			p := Process(r.Waiters[i].Owner)
			if len(holds[p]) == 0 || seen[p] || containsName(holds[p], r.Name) {
				continue
			}
			seen[p] = true
			for _, held := range shares {
				if len(b.All) == maxBlocks {
					break
				}
				x := Block{Waiter: p, Holds: holds[p], Name: r.Name, Holder: held.process}
				b.All = append(b.All, x)
				if held.blocks(&r.Waiters[i]) {
					certain = append(certain, x)
				}
			}
		}
	}
	b.Deadlocks = findCircles(certain)
	return b
}

func containsName(names []string, name string) bool {
	_, found := slices.BinarySearch(names, name)
	return found
}

// A share has what one process holds of a name.
type share struct {
	process   string
	exclusive bool
	permits   int
}

// sharesOf returns the shares of a row, in the order of its holders.
func sharesOf(r *Row) (all []share) {
	place := map[string]int{}
	for i := range r.Holders {
		h := &r.Holders[i]
		p := Process(h.Owner)
		at, known := place[p]
		if !known {
			at = len(all)
			place[p], all = at, append(all, share{process: p})
		}
		if h.Permits == driver.Exclusive {
			all[at].exclusive = true
		} else {
			all[at].permits += h.Permits
		}
	}
	return all
}

// blocks reports whether the waiter cannot go on while this share is held, even if all
// other processes release theirs.
func (x share) blocks(w *pawl.Waiter) bool {
	return x.exclusive || w.Permits == driver.Exclusive || w.Limit == driver.Unlimited || w.Limit-x.permits < w.Permits
}

// findCircles finds circles of blocks, but not all: each block that is in any circle is
// in one of those found, up to maxCircles. A block is in a circle if both of its
// processes are in one component. It searches at most maxCircles times, and each search
// sees each block once at most.
func findCircles(all []Block) (found [][]Block) {
	next := map[string][]int{} // the blocks of each waiter, as indexes into all
	for i, x := range all {
		next[x.Waiter] = append(next[x.Waiter], i)
	}
	component, shown := components(all, next), make([]bool, len(all))
	for i, x := range all {
		if shown[i] || component[x.Waiter] != component[x.Holder] {
			continue
		}
		if len(found) == maxCircles {
			break
		}
		circle := []Block{x}
		for _, at := range shortestPath(all, next, component, x.Holder, x.Waiter) {
			shown[at] = true
			circle = append(circle, all[at])
		}
		found = append(found, circle)
	}
	return found
}

// components numbers the strongly connected components: two processes have the same
// number if each keeps the other waiting, perhaps through other processes. This is the
// algorithm of R. Tarjan, "Depth-first search and linear graph algorithms", 1972, as R.
// Sedgewick shortened it.
func components(all []Block, next map[string][]int) map[string]int {
	low, component := map[string]int{}, map[string]int{} // numbers from 1
	var pending []string                                 // seen, and in no component yet
	var visit func(p string)
	visit = func(p string) {
		number, at := len(low)+1, len(pending)
		low[p] = number
		pending = append(pending, p)
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
			for _, q := range pending[at:] {
				component[q] = number
			}
			pending = pending[:at]
		}
	}
	for _, x := range all {
		if low[x.Waiter] == 0 {
			visit(x.Waiter)
		}
	}
	return component
}

// shortestPath returns a shortest path of blocks between two processes of one component.
func shortestPath(all []Block, next map[string][]int, component map[string]int, from, to string) (blocks []int) {
	reachedBy := map[string]int{from: -1} // the block by which the search came to a process
	for queue := []string{from}; queue[0] != to; queue = queue[1:] {
		for _, i := range next[queue[0]] {
			q := all[i].Holder
			if _, seen := reachedBy[q]; !seen && component[q] == component[to] {
				reachedBy[q] = i
				queue = append(queue, q)
			}
		}
	}
	for p := to; p != from; p = all[reachedBy[p]].Waiter {
		blocks = append(blocks, reachedBy[p])
	}
	slices.Reverse(blocks)
	return blocks
}
