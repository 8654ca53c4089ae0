package overview

import "time"

// A skew estimates how far the backend's clock is ahead of this process's, without asking
// the backend. No lease began in the future, and a new one began after the previous scan:
// these facts bound the difference.
type skew struct{ least, most time.Duration } // the bounds of the difference

// anySkew is what is known before any view.
var anySkew = skew{-1 << 62, 1 << 62}

// see learns from a view, and from the view before it.
func (s *skew) see(last, v *View) {
	whole := !last.ScannedAt.IsZero() && last.Err == nil && !last.More
	for _, r := range v.Rows {
		before, old := last.ScannedAt, last.Row(r.Name)
		if old != nil {
			before = old.At
		}
		for i := range r.Holders {
			h := &r.Holders[i]
			s.least = max(s.least, h.Since.Sub(r.At))
			if whole && (old == nil || old.Fence < h.Fence) {
				s.most = min(s.most, h.Since.Sub(before.Add(-last.ScanTime)))
			}
		}
	}
	if s.least > s.most { // one of the clocks was set: begin again
		*s = anySkew
	}
}

// offset is the smallest difference that agrees with all views.
func (s *skew) offset() time.Duration { return min(max(0, s.least), s.most) }
