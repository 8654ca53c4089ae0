package overview

import "time"

// A skew is what shows of how far the backend's clock is ahead of this process's. No
// backend is asked for the time: a lease never began in the future, and one that is new
// began after the look before.
type skew struct {
	least, most time.Duration // between which it is
	any         bool
}

// see learns from a view, and the one before it.
func (s *skew) see(last, v *View) {
	if !s.any {
		*s = skew{least: -1 << 62, most: 1 << 62, any: true}
	}
	whole := !last.Looked.IsZero() && last.Err == nil && !last.More
	for _, r := range v.Rows {
		before, old := last.Looked, last.Row(r.Name)
		if old != nil {
			before = old.At
		}
		for i := range r.Holders {
			h := &r.Holders[i]
			s.least = max(s.least, h.Since.Sub(r.At))
			if whole && (old == nil || old.Fence < h.Fence) {
				s.most = min(s.most, h.Since.Sub(before.Add(-last.Took)))
			}
		}
	}
	if s.least > s.most { // a clock was set: only what is seen from now on counts
		s.any = false
	}
}

// offset is the least that agrees with all that was seen.
func (s *skew) offset() time.Duration {
	if !s.any {
		return 0
	}
	return min(max(0, s.least), s.most)
}
