package overview

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl"
)

// Run reads the backend until ctx ends. It is called once.
func (s *Overview) Run(ctx context.Context) {
	r := runner{Overview: s, watched: map[string]func(){}, clock: unboundedSkew}
	defer r.updateWatches(nil)
	for ctx.Err() == nil {
		hasViewers, shown := s.namesInDemand(r.watched)
		r.updateWatches(shown)
		now := time.Now()
		scan, read, refresh := r.dueTimes(now, hasViewers)
		switch {
		case !now.Before(scan):
			r.scan(ctx)
		case !now.Before(read):
			r.readChanged(ctx)
		case !now.Before(refresh):
			r.refreshedAt = now
			for name := range shown {
				r.Refresh(name)
			}
		default:
			select {
			case <-time.After(min(scan.Sub(now), read.Sub(now), refresh.Sub(now))):
			case <-r.wake:
			case <-ctx.Done():
			}
		}
	}
}

// A runner is the state of Run's goroutine.
type runner struct {
	*Overview
	watched      map[string]func() // the functions that end the watches, by name
	scannedAt    time.Time         // when the last scan ended
	scanTime     time.Duration     // how long the last scan took
	pause        time.Duration     // the pause after the last scan
	readDue      time.Time         // when the next batch of names may be read
	refreshedAt  time.Time         // when all shown names were read last
	clock        clockSkew
	failingSince time.Time // zero if scans succeed
}

// dueTimes returns the times at which to scan all names, to read the changed names, and
// to read the shown names between two scans. For each of these that has no time yet, it
// returns the time in an hour.
func (r *runner) dueTimes(now time.Time, hasViewers bool) (scan, read, refresh time.Time) {
	inAnHour := now.Add(time.Hour)
	scan, read, refresh = inAnHour, inAnHour, inAnHour
	if !hasViewers {
		if r.options.BackgroundInterval > 0 {
			scan = r.scannedAt.Add(max(r.options.BackgroundInterval, r.pause))
		}
		return scan, read, refresh
	}
	scan = r.scannedAt.Add(r.pause)
	if r.pause > maxShownAge {
		refresh = r.refreshedAt.Add(maxShownAge)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.changed) > 0 {
		read = r.readDue
	}
	return scan, read, refresh
}

// updateWatches watches the names that are shown, and no others.
func (r *runner) updateWatches(shown map[string]struct{}) {
	for name, stop := range r.watched {
		if _, isShown := shown[name]; !isShown {
			stop()
			delete(r.watched, name)
		}
	}
	if r.watcher == nil {
		return
	}
	for name := range shown {
		if r.watched[name] == nil {
			r.watched[name] = r.watcher.Watch(r.client.StoredName(name), func() { r.Refresh(name) })
		}
	}
}

func (r *runner) scan(ctx context.Context) {
	last := r.View()
	v := &View{Properties: r.client.Properties(), pageCache: &pageCache{}}
	v.Push = r.watcher != nil && v.Properties.PushesChanges
	began := time.Now()
	r.mu.Lock()
	clear(r.changed) // this scan may miss only changes from here on
	r.mu.Unlock()
	bounded, cancel := context.WithTimeout(ctx, scanTimeout)
	err := v.readAll(bounded, r.client, r.options.Prefix)
	cancel()
	if ctx.Err() != nil {
		return
	}
	r.scannedAt = time.Now()
	r.refreshedAt, v.ScanTime = r.scannedAt, r.scannedAt.Sub(began)
	r.pause = pace(min(v.ScanTime, r.scanTime), len(v.Rows)) // one slow scan does not make the pause longer
	r.scanTime = v.ScanTime
	v.Pace = r.pause
	if err != nil {
		r.publishFailure(last, v, err)
		return
	}
	v.ScannedAt, r.failingSince = r.scannedAt, time.Time{}
	r.clock.update(last, v)
	v.Offset = r.clock.offset()
	v.inheritTTLs(last)
	r.history.recordChanges(last, v)
	r.publish(v)
}

// publishFailure publishes the old view again, with the error.
func (r *runner) publishFailure(last, v *View, err error) {
	if errors.Is(err, context.DeadlineExceeded) {
		err = &pawl.BackendError{
			Backend: v.Properties.Location, Op: "list", Err: errors.New("no answer within " + scanTimeout.String()),
			Hint: "check the server and the network",
		}
	}
	if r.failingSince.IsZero() {
		r.failingSince = r.scannedAt
	}
	old := last.copy()
	old.Properties, old.Push, old.ScanTime = v.Properties, v.Push, v.ScanTime
	old.Err, old.ErrSince = err, r.failingSince
	r.pause = failurePause
	old.Pace = r.pause
	r.publish(old)
}

// pace returns the pause after a scan of so many names that took scanTime.
func pace(scanTime time.Duration, names int) time.Duration {
	return min(max(minPause, pauseFactor*scanTime, time.Duration(names)*pausePerName), maxPause)
}

// readChanged reads the next batch of changed names.
func (r *runner) readChanged(ctx context.Context) {
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
		e, err := r.client.Inspect(bounded, name)
		cancel()
		if err != nil {
			break // the next scan reports it
		}
		v.putEntry(e, time.Now())
	}
	r.readDue = time.Now().Add(readInterval)
	if ctx.Err() != nil || last.ScannedAt.IsZero() {
		return
	}
	v.inheritTTLs(last)
	r.history.recordChanges(last, v)
	r.publish(v)
}

// A clockSkew estimates how far the backend's clock is ahead of this process's, without
// asking the backend. No lease began in the future, and a new one began after the
// previous scan: these facts bound the difference.
type clockSkew struct{ min, max time.Duration } // the bounds of the difference

// unboundedSkew has the bounds that are known before any view.
var unboundedSkew = clockSkew{-1 << 62, 1 << 62}

// update narrows the bounds by a view and the view before it.
func (s *clockSkew) update(last, v *View) {
	complete := !last.ScannedAt.IsZero() && last.Err == nil && !last.More
	for _, r := range v.Rows {
		before, old := last.ScannedAt, last.Row(r.Name)
		if old != nil {
			before = old.At
		}
		for i := range r.Holders {
			h := &r.Holders[i]
			s.min = max(s.min, h.Since.Sub(r.At))
			if complete && (old == nil || old.Fence < h.Fence) {
				s.max = min(s.max, h.Since.Sub(before.Add(-last.ScanTime)))
			}
		}
	}
	if s.min > s.max { // one of the clocks was set
		*s = unboundedSkew
	}
}

// offset returns the difference closest to 0 that agrees with all views.
func (s *clockSkew) offset() time.Duration { return min(max(0, s.min), s.max) }
