package check

import "github.com/pawl-go/pawl/cmd/pawl/prove/history"

// chain has claims in an order, without those that are gone.
type chain struct {
	claims []*history.Claim
	next   []int // next[0] is the index of the first claim, next[i+1] the index of the one after claims[i]
}

func newChain(claims []*history.Claim) *chain {
	c := &chain{claims, make([]int, len(claims)+1)}
	for i := range c.next {
		c.next[i] = i
	}
	return c
}

// each visits the claims until visit returns false as on. A claim that is gone leaves the
// chain.
func (c *chain) each(visit func(x *history.Claim) (gone, on bool)) {
	for before := 0; ; {
		i := c.next[before]
		if i == len(c.claims) {
			return
		}
		gone, on := visit(c.claims[i])
		if gone {
			c.next[before] = c.next[i+1]
		} else {
			before = i + 1
		}
		if !on {
			return
		}
	}
}
