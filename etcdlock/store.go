package etcdlock

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/optimistic"
)

// store is an [optimistic.Store] in etcd. Its keys are
//
//	PREFIX//clock         where the clock stands
//	PREFIX//clock/call    written by one that comes, and wants a tick of another
//	PREFIX//entry/NAME    the entry of a name
//	PREFIX//inbox/CLIENT  the last signals for a client
//	PREFIX//glass, sand   see glass.go
//	PREFIX//tidy          how far names were looked at that may be forgotten
//
// A prefix has no two slashes in a row and none at its end, so the first two tell where
// it ends, and no key of one prefix is a key of another.
type store struct {
	client *clientv3.Client
	own    bool // it was opened here
	prefix string
	where  string
	forget time.Duration // names that were not granted for so long

	clock *clock
	mail  *mail
	seen  atomic.Int64 // the highest revision of an answer
	swaps atomic.Int64
	deaf  atomic.Int64 // how many names are watched of which nothing is heard now

	others  atomic.Bool   // clients were open when this one came
	follows chan struct{} // closed when the clock is watched, or cannot be

	life  context.Context
	end   context.CancelFunc
	loops sync.WaitGroup

	mu      sync.Mutex        // protects all below
	cluster uint64            // that answered last
	former  []uint64          // that answered before it
	epoch   uint64            // how often revisions have begun anew
	lasts   locktable.Instant // until when something lasts that was seen
}

func (s *store) clockKey() string            { return s.prefix + "//clock" }
func (s *store) callKey() string             { return s.prefix + "//clock/call" }
func (s *store) entryKey(name string) string { return s.prefix + "//entry/" + name }
func (s *store) inboxKey(id string) string   { return s.prefix + "//inbox/" + id }
func (s *store) glassKey() string            { return s.prefix + "//glass" }
func (s *store) sandKey() string             { return s.prefix + "//sand" }
func (s *store) tidyKey() string             { return s.prefix + "//tidy" }

const (
	// together is how many names share a request: etcd takes 128 operations, and a name
	// has one and those that signal.
	together = 60

	// heavy is how many bytes do: etcd takes 1.5 MB.
	heavy = 512 << 10
)

// Lingers implements optimistic.Lingerer.
func (s *store) Lingers() {}

// Time implements optimistic.Store.
func (s *store) Time(ctx context.Context) (optimistic.Window, error) {
	select {
	case <-s.follows:
	case <-ctx.Done():
	}
	w, ok := s.clock.window(time.Now())
	if !ok {
		if err := s.readClock(ctx); err != nil {
			return w, s.failed(ctx, err)
		}
		w, _ = s.clock.window(time.Now())
	}
	return w, nil
}

// Load implements optimistic.Store.
func (s *store) Load(ctx context.Context, names []string) ([]optimistic.Stored, error) {
	all, lasting := make([]optimistic.Stored, 0, len(names)), false
	for len(names) > 0 {
		some := names[:min(len(names), together)]
		names = names[len(some):]
		var gets []clientv3.Op
		for _, name := range some {
			gets = append(gets, clientv3.OpGet(s.entryKey(name)))
		}
		sent := s.seen.Load()
		r, err := s.txn(ctx, nil, gets, nil)
		if err == nil {
			err = s.check(r.Header, sent)
		}
		if err != nil {
			return nil, s.failed(ctx, err)
		}
		for _, one := range r.Responses {
			stored := s.stored(one.GetResponseRange())
			lasting = s.note(stored) || lasting
			all = append(all, stored)
		}
	}
	if lasting {
		s.comes(ctx)
	}
	return all, nil
}

// stored is what a range over one key has.
func (s *store) stored(r *pb.RangeResponse) optimistic.Stored {
	if len(r.GetKvs()) == 0 {
		return optimistic.Stored{}
	}
	return optimistic.Stored{Value: r.GetKvs()[0].GetValue(), Version: s.version(r.GetKvs()[0].GetModRevision())}
}

// note remembers until when what was seen lasts, for the glass, and reports whether
// anybody holds it.
func (s *store) note(stored optimistic.Stored) bool {
	if len(stored.Value) == 0 {
		return false
	}
	e, err := locktable.Decode(stored.Value)
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range e.Holders { // not Ends: fences are ahead of the clock
		s.lasts = max(s.lasts, h.Expires.Add(h.LockDelay))
	}
	return len(e.Holders) > 0
}

// A version is a revision, and how often revisions have begun anew by then.
func (s *store) version(rev int64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return uint64(rev) | s.epoch<<epochAt
}

const epochAt = 48

// revision is that of a version; not ok if revisions have begun anew since.
func (s *store) revision(v uint64) (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(v & (1<<epochAt - 1)), v == 0 || v>>epochAt == s.epoch
}

// Fit implements optimistic.Gatherer: the first always fits. etcd refuses to write one
// key twice in a transaction, so no two of them put a signal into one inbox.
func (s *store) Fit(swaps []optimistic.Swap) int {
	bytes, inboxes := 0, map[string]bool(nil)
	for n, one := range swaps {
		bytes += len(one.Value)
		if n > 0 && (n == together || bytes > heavy || clashes(one, inboxes)) {
			return n
		}
		for _, to := range one.Signals {
			if inboxes == nil {
				inboxes = map[string]bool{}
			}
			inboxes[to.Inbox] = true
		}
	}
	return len(swaps)
}

func clashes(one optimistic.Swap, inboxes map[string]bool) bool {
	return slices.ContainsFunc(one.Signals, func(to locktable.Signal) bool { return inboxes[to.Inbox] })
}

// Swap implements optimistic.Store.
func (s *store) Swap(ctx context.Context, swaps []optimistic.Swap) ([]optimistic.Swapped, error) {
	s.mail.ready(ctx)
	done := make([]optimistic.Swapped, 0, len(swaps))
	for len(swaps) > 0 {
		n := s.Fit(swaps)
		some, err := s.swapParts(ctx, swaps[:n])
		if err != nil {
			return nil, s.failed(ctx, err)
		}
		done, swaps = append(done, some...), swaps[n:]
	}
	if s.swaps.Add(1)%tidyEvery == 0 {
		s.background(s.tidy)
	}
	return done, nil
}

// swapParts makes a swap of each half if the request for all is too large: etcd does not
// tell its limit. One that is too large by itself fails alone.
func (s *store) swapParts(ctx context.Context, swaps []optimistic.Swap) ([]optimistic.Swapped, error) {
	done, err := s.swap(ctx, swaps)
	if !isTooLarge(err) {
		return done, err
	}
	if len(swaps) == 1 {
		return []optimistic.Swapped{{Err: s.failed(ctx, err)}}, nil
	}
	done = nil
	for half := range slices.Chunk(swaps, (len(swaps)+1)/2) {
		some, err := s.swapParts(ctx, half)
		if err != nil {
			return nil, err
		}
		done = append(done, some...)
	}
	return done, nil
}

// swap is one transaction: if the last tick is the one that is known, each value that is
// as it was is replaced.
func (s *store) swap(ctx context.Context, swaps []optimistic.Swap) ([]optimistic.Swapped, error) {
	first, last, until := swaps[0].Window.From, swaps[0].Window.From, latest(swaps[0].Window)
	for _, one := range swaps {
		first, last = min(first, one.Window.From), max(last, one.Window.From)
		until = min(until, latest(one.Window))
	}
	t, ticks, ok := s.clock.under(first, last, time.Now())
	if !ok {
		return late(len(swaps)), nil
	}
	cs, then, otherwise := s.replaceAll(swaps)
	var next tick
	switch {
	case ticks:
		next = s.clock.next(t, first, span)
		cs, then = append(cs, s.stands(t)), append(then, s.put(next))
	case until > last: // this client is far away
		cs = append(cs, s.standsUntil(t, until)...)
	default:
		cs = append(cs, s.stands(t))
	}
	sent := s.seen.Load()
	r, err := s.txn(ctx, cs, then, slices.Concat(otherwise, s.pad(swaps), []clientv3.Op{s.getClock()}))
	if err != nil {
		return nil, err
	}
	if !r.Succeeded {
		if err := s.learnFrom(r, sent); err != nil {
			s.clock.forget()
			return nil, err
		}
		done := late(len(swaps))
		if len(otherwise) > 0 {
			done[0] = s.instead(r.Responses[0].GetResponseRange(), swaps[0])
		}
		return done, nil
	}
	if ticks {
		err = s.learnWritten(r, next, sent)
	} else {
		err = s.check(r.Header, sent)
	}
	return s.replaced(r, len(swaps)), err
}

// noPad is how many bytes a claim may have to leave free without making its request as
// large: those are in entries of less than 48 kB.
const noPad = 8 << 10

// pad makes a request larger by what a claim that joins others has to leave free. So the
// server, whatever its limit is, refuses that claim, and none of the requests after it.
// What it adds is a key to read that nobody has, if the transaction fails.
func (s *store) pad(swaps []optimistic.Swap) []clientv3.Op {
	n := 0
	for i := range swaps {
		n += swaps[i].Spare
	}
	if n <= noPad {
		return nil
	}
	return []clientv3.Op{clientv3.OpGet(s.entryKey(strings.Repeat("x", n)), clientv3.WithCountOnly())}
}

// replaceAll are the parts of the transaction that replace values. A value alone has its
// condition beside that of the clock; several have one each, in transactions of their own
// within it, so that one that is not as it was keeps none of the others.
func (s *store) replaceAll(swaps []optimistic.Swap) (cs []clientv3.Cmp, then, otherwise []clientv3.Op) {
	if len(swaps) == 1 {
		c, put, get := s.replace(swaps[0])
		return []clientv3.Cmp{c}, put, []clientv3.Op{get}
	}
	for _, one := range swaps {
		c, put, get := s.replace(one)
		then = append(then, clientv3.OpTxn([]clientv3.Cmp{c}, put, []clientv3.Op{get}))
	}
	return nil, then, nil
}

// replace replaces one value on a condition, and signals; else it reads what there is
// instead.
func (s *store) replace(one optimistic.Swap) (c clientv3.Cmp, put []clientv3.Op, get clientv3.Op) {
	key := s.entryKey(one.Name)
	rev, ok := s.revision(one.Version)
	if !ok {
		rev = -1 // none is
	}
	put = append([]clientv3.Op{clientv3.OpPut(key, string(one.Value))}, s.signals(one.Signals)...)
	return clientv3.Compare(clientv3.ModRevision(key), "=", rev), put, clientv3.OpGet(key)
}

// replaced is what became of so many, under the tick that they were meant for.
func (s *store) replaced(r *clientv3.TxnResponse, n int) []optimistic.Swapped {
	done := make([]optimistic.Swapped, n)
	for i := range done {
		if one := r.Responses[i].GetResponseTxn(); n == 1 || one.Succeeded {
			done[i] = optimistic.Swapped{Done: true, Version: s.version(r.Header.Revision)}
		} else {
			done[i] = optimistic.Swapped{Known: true, Now: s.stored(one.Responses[0].GetResponseRange())}
		}
	}
	return done
}

// instead is what became of one alone that was not taken: for another value was there, or
// because of the clock.
func (s *store) instead(r *pb.RangeResponse, one optimistic.Swap) optimistic.Swapped {
	if is := s.stored(r); is.Version != one.Version {
		return optimistic.Swapped{Known: true, Now: is}
	}
	return optimistic.Swapped{Late: true}
}

// late are so many that came when the clock had gone on.
func late(n int) []optimistic.Swapped {
	done := make([]optimistic.Swapped, n)
	for i := range done {
		done[i].Late = true
	}
	return done
}

// Scan implements optimistic.Store.
func (s *store) Scan(ctx context.Context, prefix string) iter.Seq2[optimistic.Named, error] {
	const page = 256
	return func(yield func(optimistic.Named, error) bool) {
		from, end := s.entryKey(prefix), clientv3.GetPrefixRangeEnd(s.entryKey(prefix))
		for more := true; more; {
			w, err := s.Time(ctx)
			if err != nil {
				yield(optimistic.Named{}, err)
				return
			}
			r, err := s.client.Get(clientv3.WithRequireLeader(ctx), from, clientv3.WithRange(end), clientv3.WithLimit(page))
			if err != nil {
				yield(optimistic.Named{}, s.failed(ctx, err))
				return
			}
			for _, kv := range r.Kvs {
				name := strings.TrimPrefix(string(kv.GetKey()), s.entryKey(""))
				stored := optimistic.Stored{Value: kv.GetValue(), Version: s.version(kv.GetModRevision())}
				if !yield(optimistic.Named{Name: name, Stored: stored, Now: w.From}, nil) {
					return
				}
				from = string(kv.GetKey()) + "\x00"
			}
			more = r.More
		}
	}
}

// Properties implements optimistic.Store.
func (s *store) Properties() driver.Properties {
	return driver.Properties{
		Backend: "etcd", Where: s.place(), Clock: driver.ClockServer, MinTTL: MinTTL, Push: true,
		PushesChanges: s.deaf.Load() == 0,
		FenceSurvives: "elections, restarts, an older snapshot that is restored, and the loss of all data, if the clients' clocks are right",
	}
}

// background runs f, unless the store is closed, which waits for it.
func (s *store) background(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() == nil {
		s.loops.Go(f)
	}
}

// Close implements optimistic.Store.
func (s *store) Close() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.life), goodbye)
	defer cancel()
	s.mu.Lock()
	s.end()
	s.mu.Unlock()
	s.loops.Wait()
	s.leaves(ctx)
	s.mail.leave(ctx)
	if s.own {
		hangUp(s.client)
	}
	return nil
}

// hangUp closes a client. Its own Close can wait for ever for a watch that was not
// allowed (v3.7.3), so the connection goes first, and the rest is not waited for that
// long.
func hangUp(client *clientv3.Client) {
	_ = client.ActiveConnection().Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = client.Close()
	}()
	select {
	case <-done:
	case <-time.After(goodbye):
	}
}
