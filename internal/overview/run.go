package overview

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl"
)

// Run reads the backend until ctx ends. It is called once.
func (s *Overview) Run(ctx context.Context) {
	r := runner{Overview: s, watched: map[string]func(){}, clock: anySkew}
	defer r.follow(nil)
	for ctx.Err() == nil {
		wanted, shown := s.demand(r.watched)
		r.follow(shown)
		now := time.Now()
		scan, read, fresh := r.due(now, wanted)
		switch {
		case !now.Before(scan):
			r.scan(ctx)
		case !now.Before(read):
			r.read(ctx)
		case !now.Before(fresh):
			r.fresh = now
			for name := range shown {
				r.Refresh(name)
			}
		default:
			timer := time.NewTimer(min(scan.Sub(now), read.Sub(now), fresh.Sub(now)))
			select {
			case <-timer.C:
			case <-r.wake:
			case <-ctx.Done():
			}
			timer.Stop()
		}
	}
}

// A runner is the state of Run's goroutine.
type runner struct {
	*Overview
	watched   map[string]func() // the functions that end the watches, by name
	scannedAt time.Time         // when the last scan ended
	took      time.Duration     // how long the last scan took
	pause     time.Duration     // the pause after the last scan
	readDue   time.Time         // when the next batch of names may be read
	fresh     time.Time         // when all shown names were read last
	clock     skew
	failing   time.Time // the time since which scans fail; zero if they succeed
}

// due returns when to scan all names, to read those that have changed, and to read the
// shown ones between two scans. It returns the time in an hour for a thing that is not
// due.
func (r *runner) due(now time.Time, wanted bool) (scan, read, fresh time.Time) {
	later := now.Add(time.Hour)
	scan, read, fresh = later, later, later
	if !wanted {
		if r.o.Background > 0 {
			scan = r.scannedAt.Add(max(r.o.Background, r.pause))
		}
		return scan, read, fresh
	}
	scan = r.scannedAt.Add(r.pause)
	if r.pause > maxShownAge {
		fresh = r.fresh.Add(maxShownAge)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.changed) > 0 {
		read = r.readDue
	}
	return scan, read, fresh
}

// follow watches the names that are shown, and no others.
func (r *runner) follow(shown map[string]struct{}) {
	for name, stop := range r.watched {
		if _, still := shown[name]; !still {
			stop()
			delete(r.watched, name)
		}
	}
	if r.watcher == nil {
		return
	}
	for name := range shown {
		if r.watched[name] == nil {
			r.watched[name] = r.watcher.Watch(r.c.StoredName(name), func() { r.Refresh(name) })
		}
	}
}

func (r *runner) scan(ctx context.Context) {
	last := r.View()
	v := &View{Properties: r.c.Properties(), pages: &pages{}}
	v.Push = r.watcher != nil && v.Properties.PushesChanges
	began := time.Now()
	r.mu.Lock()
	clear(r.changed) // this scan may not see the changes from here on
	r.mu.Unlock()
	bounded, cancel := context.WithTimeout(ctx, scanTimeout)
	err := v.list(bounded, r.c, r.o.Prefix)
	cancel()
	if ctx.Err() != nil {
		return
	}
	r.scannedAt = time.Now()
	r.fresh, v.ScanTime = r.scannedAt, r.scannedAt.Sub(began)
	r.pause = pace(min(v.ScanTime, r.took), len(v.Rows)) // one slow scan does not make the pause longer
	r.took = v.ScanTime
	v.Pace = r.pause
	if err != nil {
		r.failed(last, v, err)
		return
	}
	v.ScannedAt, r.failing = r.scannedAt, time.Time{}
	r.clock.see(last, v)
	v.Offset = r.clock.offset()
	v.inherit(last)
	r.history.compare(last, v)
	r.publish(v)
}

// failed publishes the old view again, with the error.
func (r *runner) failed(last, v *View, err error) {
	if errors.Is(err, context.DeadlineExceeded) {
		err = &pawl.BackendError{
			Backend: v.Properties.Location, Op: "list", Err: errors.New("no answer within " + scanTimeout.String()),
			Hint: "check the server and the network",
		}
	}
	if r.failing.IsZero() {
		r.failing = r.scannedAt
	}
	old := last.copy()
	old.Properties, old.Push, old.ScanTime = v.Properties, v.Push, v.ScanTime
	old.Err, old.ErrSince = err, r.failing
	r.pause = failurePause
	old.Pace = r.pause
	r.publish(old)
}

// pace returns the pause after a scan that took so long, over so many names.
func pace(took time.Duration, names int) time.Duration {
	return min(max(minPause, pauseFactor*took, time.Duration(names)*pausePerName), maxPause)
}

// read reads the next of the names that have changed.
func (r *runner) read(ctx context.Context) {
	var names []string
	r.mu.Lock()
	for name := range r.changed {
		if len(names) < readBatchSize {
			names = append(names, name)
			delete(r.changed, name)
		}
	}
	r.mu.Unlock()
	last := r.View()
	v := last.copy()
	for _, name := range names {
		bounded, cancel := context.WithTimeout(ctx, readTimeout)
		e, err := r.c.Inspect(bounded, name)
		cancel()
		if err != nil {
			break // the next scan reports it
		}
		v.put(e, time.Now())
	}
	r.readDue = time.Now().Add(readInterval)
	if ctx.Err() != nil || last.ScannedAt.IsZero() {
		return
	}
	v.inherit(last)
	r.history.compare(last, v)
	r.publish(v)
}

// A skew estimates how far the backend's clock is ahead of this process's, without asking
// the backend. No lease began in the future, and a new one began after the previous scan:
// these facts bound the difference.
type skew struct{ least, most time.Duration } // the bounds of the difference

// anySkew has the bounds that are known before any view.
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

// offset returns the smallest difference that agrees with all views.
func (s *skew) offset() time.Duration { return min(max(0, s.least), s.most) }
