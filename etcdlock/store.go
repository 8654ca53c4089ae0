package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/sqlswap"
	"github.com/pawl-go/pawl/internal/ticked"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

// store is a [swap.Store] in etcd. Its keys are
//
//	PREFIX//clock         the last tick
//	PREFIX//clock/call    written by a client that opens, to ask the others for a tick
//	PREFIX//entry/NAME    the entry of a name
//	PREFIX//inbox/CLIENT  the last signals for a client
//	PREFIX//glass, sand   the timer, see downtime.go
//	PREFIX//tidy          the next name to examine, see tidy.go
//
// A prefix does not contain two slashes in a row, or end with a slash. So the first two
// slashes of a key end its prefix, and no key belongs to two prefixes.
type store struct {
	client     *clientv3.Client
	ownsClient bool            // the driver opened the client, and has to close it
	tls        *tlsCredentials // nil without TLS, and for a client of the caller
	prefix     string
	servers    string        // for errors
	retention  time.Duration // see Options

	clock        *ticked.Clock
	lastRevision atomic.Int64 // the highest revision of an answer; checkHeader writes it, with mu locked
	tidier       sqlswap.Tidier
	watchesDown  atomic.Int64 // the number of watched names whose watch is down

	hasPeers   atomic.Bool   // an inbox existed when this client last read the clock
	clockTried chan struct{} // closed when the watch on the clock has begun or failed for the first time

	id         string // of the inbox
	deliver    func(driver.Signal)
	inboxTried chan struct{} // closed when the inbox exists, or could not be created
	inboxLease atomic.Int64  // the ID of the last etcd lease of the inbox; 0 if there was none

	life    context.Context // ends at Close
	end     context.CancelFunc
	running engine.Background

	mu             sync.Mutex                   // protects the fields below
	cluster        uint64                       // the ID of the cluster that answered last
	formerClusters []uint64                     // the IDs of the clusters that answered earlier
	epoch          uint64                       // the number of times that revisions began to repeat
	leaseEnds      map[string]locktable.Instant // for each name: the time when it becomes free, as last read or written
	purgeEndsAt    int                          // the number of leaseEnds at which recordLeases removes past ones
}

func (s *store) clockKey() string            { return s.prefix + "//clock" }
func (s *store) tickRequestKey() string      { return s.prefix + "//clock/call" }
func (s *store) entryKey(name string) string { return s.prefix + "//entry/" + name }
func (s *store) inboxKey(id string) string   { return s.prefix + "//inbox/" + id }
func (s *store) timerKey() string            { return s.prefix + "//glass" }
func (s *store) timerLeaseKey() string       { return s.prefix + "//sand" }
func (s *store) tidyKey() string             { return s.prefix + "//tidy" }

const (
	// maxNamesPerRequest is the largest number of names that share a request. etcd
	// accepts 128 operations; a name takes one, and its signals take more.
	maxNamesPerRequest = 60

	// maxBytesPerRequest limits the values that share a request. etcd accepts 1.5 MB.
	maxBytesPerRequest = 512 << 10
)

// Time implements swap.Store.
func (s *store) Time(ctx context.Context) (swap.Window, error) {
	waitFor(ctx, s.clockTried)
	w, ok := s.clock.Window(time.Now())
	if !ok {
		if err := s.readClock(ctx); err != nil {
			return w, s.driverError(ctx, err)
		}
		w, _ = s.clock.Window(time.Now())
	}
	return w, nil
}

// Load implements swap.Store.
func (s *store) Load(ctx context.Context, names []string) ([]swap.Stored, error) {
	all, anyHeld := make([]swap.Stored, 0, len(names)), false
	for chunk := range slices.Chunk(names, maxNamesPerRequest) {
		var gets []clientv3.Op
		for _, name := range chunk {
			gets = append(gets, clientv3.OpGet(s.entryKey(name)))
		}
		r, err := s.txn(ctx, nil, gets, nil)
		if err != nil {
			return nil, s.driverError(ctx, err)
		}
		for i, response := range r.Responses {
			stored := s.stored(response.GetResponseRange())
			anyHeld = s.recordStored(chunk[i], stored) || anyHeld
			all = append(all, stored)
		}
	}
	if anyHeld {
		s.startTimerAtOpen(ctx)
	}
	return all, nil
}

// stored returns the value and the version in the answer to a read of one key.
func (s *store) stored(r *pb.RangeResponse) swap.Stored {
	if len(r.GetKvs()) == 0 {
		return swap.Stored{}
	}
	return swap.Stored{Value: r.GetKvs()[0].GetValue(), Version: s.version(r.GetKvs()[0].GetModRevision())}
}

// recordStored calls recordLeases for the entry in a value.
func (s *store) recordStored(name string, stored swap.Stored) bool {
	e, err := locktable.Decode(stored.Value)
	return err == nil && s.recordLeases(name, e)
}

// recordLeases updates leaseEnds, and reports whether the name is held or closed.
func (s *store) recordLeases(name string, e *locktable.Entry) bool {
	last := e.Closed
	for _, h := range e.Holders { // not e.Ends(), which includes the last fence, which may be ahead of the clock
		last = max(last, h.Expires.Add(h.LockDelay))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if last == 0 {
		delete(s.leaseEnds, name)
		return false
	}
	if len(s.leaseEnds) >= s.purgeEndsAt {
		t, _ := s.clock.Current()
		maps.DeleteFunc(s.leaseEnds, func(_ string, end locktable.Instant) bool { return end < t.Instant })
		s.purgeEndsAt = 2*len(s.leaseEnds) + 64
	}
	s.leaseEnds[name] = last
	return true
}

// version combines the revision of a value with the present epoch.
func (s *store) version(rev int64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return uint64(rev) | s.epoch<<epochShift
}

const epochShift = 48

// revision returns the revision in a version, and false if the version is from an earlier
// epoch.
func (s *store) revision(v uint64) (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(v & (1<<epochShift - 1)), v == 0 || v>>epochShift == s.epoch
}

// Fit implements swap.Gatherer. The first swap always fits. etcd refuses to write a key
// twice in a transaction, so at most one swap may write signals into each inbox.
func (s *store) Fit(swaps []swap.Swap) int {
	bytes, inboxes := 0, map[string]bool{}
	for n, sw := range swaps {
		bytes += len(sw.Value)
		clashes := slices.ContainsFunc(sw.Signals, func(to locktable.Signal) bool { return inboxes[to.Inbox] })
		if n > 0 && (n == maxNamesPerRequest || bytes > maxBytesPerRequest || clashes) {
			return n
		}
		for _, to := range sw.Signals {
			inboxes[to.Inbox] = true
		}
	}
	return len(swaps)
}

// Swap implements swap.Store. The limit of etcd's requests is unknown, so Swap halves a
// request that is too large. If a single swap is too large, only that swap fails.
func (s *store) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	waitFor(ctx, s.inboxTried)
	done := make([]swap.Swapped, 0, len(swaps))
	for len(swaps) > 0 {
		n := s.Fit(swaps)
		results, err := s.swap(ctx, swaps[:n], 1)
		for isTooLarge(err) && n > 1 {
			n = (n + 1) / 2
			results, err = s.swap(ctx, swaps[:n], 1)
		}
		switch {
		case isTooLarge(err):
			results = []swap.Swapped{{Err: s.driverError(ctx, err)}}
		case err != nil:
			return nil, s.driverError(ctx, err)
		}
		done, swaps = append(done, results...), swaps[n:]
	}
	return done, nil
}

// SwapAll implements swap.AllSwapper.
func (s *store) SwapAll(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	waitFor(ctx, s.inboxTried)
	done, err := s.swap(ctx, swaps, len(swaps))
	switch {
	case isTooLarge(err): // each swap alone may fit
		return nil, fmt.Errorf("%w (%w)", errors.ErrUnsupported, err)
	case err != nil:
		return nil, s.driverError(ctx, err)
	}
	return done, nil
}

// swap runs one transaction. It has an effect only if the last tick is the known tick, or
// a later tick that the windows of the swaps allow. Then each group of swaps replaces its
// values, unless one of these values has changed.
func (s *store) swap(ctx context.Context, swaps []swap.Swap, groupSize int) ([]swap.Swapped, error) {
	s.tidier.CountSwap()
	first, last, until := swaps[0].Window.From, swaps[0].Window.From, ticked.Latest(swaps[0].Window)
	for _, sw := range swaps {
		first, last = min(first, sw.Window.From), max(last, sw.Window.From)
		until = min(until, ticked.Latest(sw.Window))
	}
	outside := slices.Repeat([]swap.Swapped{{OutsideWindow: true}}, len(swaps))
	t, addTick, ok := s.clock.ForSteps(first, last, time.Now())
	if !ok {
		return outside, nil
	}
	var then []clientv3.Op
	for group := range slices.Chunk(swaps, groupSize) {
		then = append(then, s.replaceOp(group))
	}
	conditions, next := []clientv3.Cmp{s.lastTickIs(t)}, ticked.Tick{}
	if addTick {
		next = s.clock.Next(t, first, ticked.MaxAdvance)
	} else if until > last { // the windows have a width, because this client is far away
		conditions = s.lastTickIsBetween(t, until)
	}
	r, err := s.txnAtTick(ctx, conditions, then, s.pad(swaps), next)
	switch {
	case r == nil:
		return nil, err
	case !r.Succeeded:
		return outside, err
	}
	done := make([]swap.Swapped, len(swaps))
	for i := range done {
		if result := r.Responses[i/groupSize].GetResponseTxn(); result.Succeeded {
			done[i] = swap.Swapped{Done: true, Version: s.version(r.Header.Revision)}
			s.recordLeases(swaps[i].Name, swaps[i].Entry)
		} else {
			done[i] = swap.Swapped{HasStored: true, Stored: s.stored(result.Responses[i%groupSize].GetResponseRange())}
			s.recordStored(swaps[i].Name, done[i].Stored)
		}
	}
	return done, err
}

// replaceOp returns the nested transaction of a group of swaps. It writes the values and
// the signals if no value has changed, and otherwise reads the values.
func (s *store) replaceOp(group []swap.Swap) clientv3.Op {
	var unchanged []clientv3.Cmp
	var puts, gets []clientv3.Op
	var signals []locktable.Signal
	for _, sw := range group {
		key := s.entryKey(sw.Name)
		rev, ok := s.revision(sw.Version)
		if !ok {
			rev = -1 // matches no revision
		}
		unchanged = append(unchanged, clientv3.Compare(clientv3.ModRevision(key), "=", rev))
		puts, gets = append(puts, clientv3.OpPut(key, string(sw.Value))), append(gets, clientv3.OpGet(key))
		signals = append(signals, sw.Signals...)
	}
	return clientv3.OpTxn(unchanged, append(puts, s.signalOps(signals)...), gets)
}

// unpaddedBytes is the largest ReserveBytes that pad ignores. A claim on an entry of less
// than 48 kB reserves no more than this.
const unpaddedBytes = 8 << 10

// pad makes a request larger by the ReserveBytes of its swaps. So the server, whose limit
// is unknown, refuses a claim that joins others rather than a later renewal or release.
// pad adds the read of a long key that does not exist. etcd runs that read only if the
// conditions fail.
func (s *store) pad(swaps []swap.Swap) []clientv3.Op {
	n := 0
	for i := range swaps {
		n += swaps[i].ReserveBytes
	}
	if n <= unpaddedBytes {
		return nil
	}
	return []clientv3.Op{clientv3.OpGet(s.entryKey(strings.Repeat("x", n)), clientv3.WithCountOnly())}
}

// Scan implements swap.Store.
func (s *store) Scan(ctx context.Context, prefix string) iter.Seq2[swap.Named, error] {
	end := clientv3.WithRange(clientv3.GetPrefixRangeEnd(s.entryKey(prefix)))
	return sqlswap.Scan(prefix, func(from string, n int) (rows []swap.Named, _ error) {
		w, err := s.Time(ctx)
		if err != nil {
			return nil, err
		}
		r, err := s.client.Get(clientv3.WithRequireLeader(ctx), s.entryKey(from), end, clientv3.WithLimit(int64(n)))
		if err != nil {
			return nil, s.driverError(ctx, err)
		}
		for _, kv := range r.Kvs {
			name := strings.TrimPrefix(string(kv.GetKey()), s.entryKey(""))
			stored := swap.Stored{Value: kv.GetValue(), Version: s.version(kv.GetModRevision())}
			rows = append(rows, swap.Named{Name: name, Stored: stored, Now: w.From, WallClock: locktable.At(time.Now())})
		}
		return rows, nil
	}, func(row swap.Named) string { return row.Name })
}

// Properties implements swap.Store.
func (s *store) Properties() driver.Properties {
	return driver.Properties{
		Backend: "etcd", Location: s.location(), Clock: driver.ClockServer, MinTTL: MinTTL, PushesGrants: true,
		PushesChanges: s.watchesDown.Load() == 0, FenceSurvives: driver.FencesRiseByClientClock,
	}
}

// DelaysWrites implements swap.DelayedWriter.
func (s *store) DelaysWrites() {}

// Close implements swap.Store.
func (s *store) Close() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.life), closeTimeout)
	defer cancel()
	s.end()
	s.running.Close()
	s.startTimerAtClose(ctx)
	s.removeInbox(ctx)
	if s.ownsClient {
		closeClient(s.client)
	}
	return nil
}

// closeClient closes a client. The client's Close can wait for ever for a watch that the
// server refused (v3.7.3). So closeClient closes the connection first, and then waits for
// Close for at most closeTimeout.
func closeClient(client *clientv3.Client) {
	_ = client.ActiveConnection().Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = client.Close()
	}()
	select {
	case <-done:
	case <-time.After(closeTimeout):
	}
}
