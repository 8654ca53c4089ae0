package etcdlock

import (
	"context"
	"iter"
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
			return w, s.trouble(ctx, err)
		}
		w, _ = s.clock.window(time.Now())
	}
	return w, nil
}

// Load implements optimistic.Store.
func (s *store) Load(ctx context.Context, names []string) ([]optimistic.Stored, error) {
	all := make([]optimistic.Stored, 0, len(names))
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
			return nil, s.trouble(ctx, err)
		}
		for _, one := range r.Responses {
			stored := s.stored(one.GetResponseRange())
			s.note(stored)
			all = append(all, stored)
		}
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

// note remembers until when what was seen lasts, for the glass.
func (s *store) note(stored optimistic.Stored) {
	if len(stored.Value) == 0 {
		return
	}
	if e, err := locktable.Decode(stored.Value); err == nil && len(e.Holders) > 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lasts = max(s.lasts, e.Ends())
	}
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

// Swap implements optimistic.Store.
func (s *store) Swap(ctx context.Context, swaps []optimistic.Swap) ([]optimistic.Swapped, error) {
	s.mail.ready(ctx)
	done := make([]optimistic.Swapped, 0, len(swaps))
	for len(swaps) > 0 {
		n, bytes := 1, len(swaps[0].Value)
		for n < len(swaps) && n < together {
			if bytes += len(swaps[n].Value); bytes > heavy {
				break
			}
			n++
		}
		some, err := s.swap(ctx, swaps[:n])
		if err != nil {
			return nil, s.trouble(ctx, err)
		}
		done, swaps = append(done, some...), swaps[n:]
	}
	if s.swaps.Add(1)%tidyEvery == 0 {
		s.background(s.tidy)
	}
	return done, nil
}

// swap is one transaction: if the clock stands where it stood, each value that is as it
// was is replaced.
func (s *store) swap(ctx context.Context, swaps []optimistic.Swap) ([]optimistic.Swapped, error) {
	done := make([]optimistic.Swapped, len(swaps))
	now, is := time.Now(), swaps[0].Window.From
	for _, one := range swaps { // what was computed for a later moment lasts until a later one
		is = min(is, one.Window.From)
	}
	t, ticks, ok := s.clock.under(is, now)
	if !ok {
		return late(done), nil
	}
	var then []clientv3.Op
	for _, one := range swaps {
		then = append(then, s.replace(one))
	}
	if ticks {
		then = append(then, clientv3.OpPut(s.clockKey(), encodeTick(is, span)))
	}
	sent := s.seen.Load()
	r, err := s.txn(ctx, s.stands(t), then, []clientv3.Op{s.getClock()})
	if err != nil {
		return nil, err
	}
	if !r.Succeeded {
		err := s.learnFrom(r, sent)
		if err != nil {
			s.clock.forget()
		}
		return late(done), err
	}
	if ticks {
		s.clock.learn(is, span, r.Header.Revision, now, false)
	}
	for i := range swaps {
		one := r.Responses[i].GetResponseTxn()
		if one.Succeeded {
			done[i] = optimistic.Swapped{Done: true, Version: s.version(r.Header.Revision)}
		} else {
			done[i] = optimistic.Swapped{Known: true, Now: s.stored(one.Responses[0].GetResponseRange())}
		}
	}
	return done, s.check(r.Header, sent)
}

func late(all []optimistic.Swapped) []optimistic.Swapped {
	for i := range all {
		all[i].Late = true
	}
	return all
}

// replace replaces one value if it is as it was, and signals; else it reads what there is
// instead.
func (s *store) replace(one optimistic.Swap) clientv3.Op {
	key := s.entryKey(one.Name)
	rev, ok := s.revision(one.Version)
	if !ok {
		rev = -1 // none is
	}
	then := append([]clientv3.Op{clientv3.OpPut(key, string(one.Value))}, s.signals(one.Signals)...)
	return clientv3.OpTxn(
		[]clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", rev)}, then, []clientv3.Op{clientv3.OpGet(key)})
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
				yield(optimistic.Named{}, s.trouble(ctx, err))
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
		Backend: "etcd", Where: s.where, Clock: "server", MinTTL: MinTTL, Push: true,
		FenceSurvives: "elections, restarts and the loss of a minority of the members; not an older snapshot that is restored",
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
	s.turnGlass(ctx)
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
