package check

import "github.com/pawl-go/pawl/cmd/pawl/prove/history"

// excludes reports whether two claims of a name cannot be held at one time.
func (n *name) excludes(a, b *history.Claim) bool {
	switch {
	case a.Mode == history.Whole || b.Mode == history.Whole:
		return true
	case a.Mode == history.Permits && b.Mode == history.Permits:
		return a.Weight+b.Weight > n.Limit
	}
	return false
}

// against returns the holders beside which a claim cannot be held. If a claim for permits
// finds too few, these are all holders of permits.
func (n *name) against(holders []*history.Claim, c *history.Claim) []*history.Claim {
	var no []*history.Claim
	weight := c.Weight
	for _, h := range holders {
		if h.Mode == history.Permits {
			weight += h.Weight
		}
	}
	for _, h := range holders {
		switch {
		case n.excludes(h, c), h.Mode == history.Permits && c.Mode == history.Permits && weight > n.Limit:
			no = append(no, h)
		}
	}
	return no
}

// alone reports whether the holder of a claim has the name for itself.
func (n *name) alone(c *history.Claim) bool {
	return c.Mode == history.Whole || c.Mode == history.Permits && c.Weight >= n.Limit
}
