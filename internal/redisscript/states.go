package redisscript

import (
	"context"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// List reads the stored states of a page with one script, and this file decodes them. A
// script for each name would cost the server ten times as much. Only a name with details,
// or with a state that this file cannot decode, gets a script of its own.

// readStates returns an entry for each name, or nil if the name needs a script of its
// own.
func (d *Driver) readStates(ctx context.Context, names []string) ([]*driver.Entry, error) {
	if err := d.ready(ctx); err != nil {
		return nil, err
	}
	all := make([]*driver.Entry, len(names))
	if d.client.Cluster || d.statesRefused.Load() { // in a cluster the keys are of different slots
		return all, nil
	}
	var c Call
	for _, name := range names {
		c.Keys = append(c.Keys, stateKey(d.Prefix, name))
	}
	p := d.resendIfLost(ctx, func() Reply { return run(ctx, d.conn, States, c) })
	if p.Err != nil {
		return nil, d.wrapErr(ctx, "read", names[0], p.Err)
	}
	if p.Text == "-" { // do not try again, because each refusal adds a line to the server's ACL LOG
		d.statesRefused.Store(true)
		return all, nil
	}
	r := reader{rest: p.Text}
	now := r.instant()
	for i, name := range names {
		n := r.integer(4)
		if n == 0 {
			continue
		}
		if e, ok := readState(r.take(n - 1)); ok && !r.failed {
			public := e.Public(now, name)
			all[i] = &public
		}
	}
	return all, nil
}

// readState decodes the stored state of a name without details, see lua/lib/layout.lua.
// It returns false for any other state.
func readState(s string) (e locktable.Entry, ok bool) {
	const (
		leased, detailed, valued = 1, 2, 4 // flags
		valueSize, watchSize     = 10, 8   // bytes at the end of the state
		queueFrom                = 1 << 52 // all fences are less
	)
	r := reader{rest: s}
	version, flags := r.integer(1), r.integer(1)
	e.Fence, e.Closed = uint64(r.instant()), r.instant()
	r.take(8) // the expiry of S; earlier versions stored fractions
	if version != storedVersion || flags >= 2*waySlot || flags&detailed != 0 {
		return locktable.Entry{}, false
	}
	if flags >= wayPlain {
		w := r.takeEnd(watchSize)
		w.instant()
		r.failed = r.failed || w.failed
	}
	if flags&valued != 0 {
		v := r.takeEnd(valueSize)
		e.Value.Fence = uint64(v.instant())
		n := v.integer(2)
		e.Value.Bytes = []byte(r.takeEnd(n).rest)
		r.failed = r.failed || v.failed
	}
	if flags&leased != 0 {
		var h locktable.Holder
		h.Weight, h.Limit = driver.Exclusive, driver.Exclusive
		h.Expires, h.Since, h.Fences = r.instant(), r.instant(), r.integer(4)
		if token := r.take(len(driver.Token{})); token != string(make([]byte, len(token))) {
			h.Token = hiddenToken
		}
		h.LockDelay = r.duration()
		h.Fence = e.Fence - uint64(h.Fences) + 1
		r.failed = r.failed || h.Fences < 1 || h.Fence > e.Fence
		r.claimantFields(&h.ClaimInfo)
		e.Holders = []locktable.Holder{h}
	}
	return e, !r.failed && len(r.rest) == 0 && max(e.Fence, e.Value.Fence) < queueFrom
}
