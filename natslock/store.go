package natslock

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/optimistic"
)

// store is a bucket. It implements optimistic.Store: the version of a value is its
// sequence in the bucket's stream, and the note are the void ones before it.
type store struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	o      Options
	stream string // of the bucket
	prefix string // of the subjects of its keys
	puts   string // of the subjects to which their messages are sent
	clock  optimistic.Clock
	bucket bucket
	push   push
	stamps stamps
	own    bool // whether the connection is
	end    func()

	reads, writes silence
	trip          atomic.Int64 // a time.Duration: of the last question that was answered

	watchers driver.Watchers
	deaf     atomic.Int64    // how many names are watched of which nothing is heard now
	life     context.Context // of those who watch
	leave    context.CancelFunc

	closed atomic.Bool
}

func newStore(nc *nats.Conn, o Options) (*store, error) {
	js, err := jetstream.New(nc)
	if o.Domain != "" {
		js, err = jetstream.NewWithDomain(nc, o.Domain)
	}
	if err != nil {
		return nil, invalid("connection", "cannot be used: "+err.Error(), "an open *nats.Conn")
	}
	s := &store{nc: nc, js: js, o: o, stream: "KV_" + o.Bucket, prefix: "$KV." + o.Bucket + ".", end: func() {}}
	s.puts = s.prefix
	if o.Domain != "" { // the plain subject does not leave the domain that the connection is in
		s.puts = s.api(s.prefix)
	}
	s.bucket.turn = make(chan struct{}, 1)
	s.life, s.leave = context.WithCancel(context.Background())
	s.watchers.Follow(s.followName)
	return s, nil
}

// Time implements optimistic.Store. What is known of the server's clock is learned from
// the stamps of our own swaps; the stream is asked if that was long ago, and once a
// minute for its configuration.
func (s *store) Time(ctx context.Context) (optimistic.Window, error) {
	for range 8 {
		now := time.Now()
		if w, ok := s.clock.Window(now); ok && !s.bucket.isDue(now) {
			return w, nil
		}
		if err := s.askTime(ctx); err != nil {
			return optimistic.Window{}, err
		}
	}
	return optimistic.Window{}, s.failed(errNoTime)
}

func (s *store) askTime(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	sent := time.Now()
	info, err := s.info(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) { // it was deleted
		s.bucket.doubt()
		if err := s.ready(ctx); err != nil {
			return err
		}
		sent = time.Now()
		info, err = s.info(ctx)
	}
	if err != nil {
		return err
	}
	s.clock.Learn(locktable.At(info.TimeStamp), sent, time.Now())
	s.stamps.missed.Store(0)
	return s.know(&info.Config) // somebody may have changed it since, as the doctor advised or otherwise
}

// Load implements optimistic.Store.
func (s *store) Load(ctx context.Context, names []string) ([]optimistic.Stored, error) {
	// If the time is not known it is asked for first: on a slow link what was read would
	// be too old after that, see fresh.
	if _, err := s.Time(ctx); err != nil {
		return nil, err
	}
	all, errs := make([]optimistic.Stored, len(names)), make([]error, len(names))
	together(len(names), func(i int) { all[i], errs[i] = s.load(ctx, names[i]) })
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (s *store) load(ctx context.Context, name string) (optimistic.Stored, error) {
	m, err := s.last(ctx, keyOf(name))
	if err != nil || m == nil {
		return optimistic.Stored{}, err
	}
	return m.stored(time.Now())
}

// Swap implements optimistic.Store.
func (s *store) Swap(ctx context.Context, swaps []optimistic.Swap) ([]optimistic.Swapped, error) {
	all := make([]optimistic.Swapped, len(swaps))
	together(len(swaps), func(i int) {
		var err error
		if all[i], err = s.swap(ctx, &swaps[i]); err != nil {
			all[i] = optimistic.Swapped{Err: err}
		}
	})
	return all, nil
}

// swap publishes the new value, and then looks at its stamp.
func (s *store) swap(ctx context.Context, swap *optimistic.Swap) (optimistic.Swapped, error) {
	if err := s.ready(ctx); err != nil {
		return optimistic.Swapped{}, err
	}
	if !seenLately(swap) {
		return optimistic.Swapped{}, nil
	}
	if err := s.crowded(swap); err != nil {
		return optimistic.Swapped{}, err
	}
	w := write(swap)
	stamps := s.listenForStamp(w.key)
	defer stamps.stop()
	var err error
	switch w.sequence, err = s.publish(ctx, s.message(w, swap.Version)); {
	case codeOf(err) == codeNoMessageTTL: // others have made the bucket anew since we looked at it
		s.bucket.doubt()
		return optimistic.Swapped{}, nil
	case isWrongSequence(err):
		return optimistic.Swapped{}, nil
	case errors.Is(err, nats.ErrNoResponders) && s.bucket.unheard.Add(1) < unheardOf:
		s.clock.Late(swap.Window) // nobody got it: the leader is another one soon, or the bucket is gone
		return optimistic.Swapped{Late: true}, nil
	case err != nil:
		return optimistic.Swapped{}, err
	}
	s.bucket.unheard.Store(0)
	w.acked = time.Now()
	done, err := s.judge(ctx, w, stamps)
	if err == nil && done.Done {
		s.signal(swap.Signals)
	}
	return done, err
}

func (s *store) message(w *written, replaces uint64) *nats.Msg {
	m := nats.NewMsg(s.puts + w.key)
	m.Data = w.data
	m.Header[jetstream.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(replaces, 10)}
	if s.bucket.forgets() {
		m.Header[jetstream.MsgTTLHeader] = []string{strconv.FormatInt(int64((w.kept+s.o.Retention)/time.Second)+1, 10)}
	}
	return m
}

// Scan implements optimistic.Store.
func (s *store) Scan(ctx context.Context, prefix string) iter.Seq2[optimistic.Named, error] {
	return func(yield func(optimistic.Named, error) bool) {
		names, err := s.names(ctx, prefix)
		if err != nil {
			yield(optimistic.Named{}, err)
			return
		}
		for some := range slices.Chunk(names, atOnce) {
			all, errs := make([]optimistic.Stored, len(some)), make([]error, len(some))
			together(len(some), func(i int) { all[i], errs[i] = s.load(ctx, some[i]) })
			w, err := s.Time(ctx)
			for i, name := range some {
				if _, damaged := errors.AsType[*locktable.CorruptError](errs[i]); err != nil || errs[i] != nil && !damaged {
					yield(optimistic.Named{}, cmp.Or(err, errs[i]))
					return
				}
				row := optimistic.Named{Name: name, Stored: all[i], Now: w.From}
				if (errs[i] != nil || len(all[i].Value) > 0) && !yield(row, errs[i]) {
					return
				}
			}
		}
	}
}

// names are those with a prefix, in their order.
func (s *store) names(ctx context.Context, prefix string) (names []string, err error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	info, err := s.info(ctx, jetstream.WithSubjectFilter(s.prefix+">"))
	if err != nil {
		return nil, err
	}
	for subject := range info.State.Subjects {
		name, ok := nameOf(strings.TrimPrefix(subject, s.prefix))
		if ok && strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Properties implements optimistic.Store.
func (s *store) Properties() driver.Properties {
	return driver.Properties{
		Backend: "nats", Where: s.where(), Clock: driver.ClockServer,
		FenceSurvives: "lost messages, a bucket that was deleted, and another leader, as long as the servers' clocks agree",
		MinTTL:        driver.MinTTL,
		Push:          s.push.works(),
		PushesChanges: s.pushesChanges(),
	}
}

// Lingers implements optimistic.Lingerer: a write that was given up may be in the log of
// the next leader while the old one, which was cut off, says that nothing is there.
func (s *store) Lingers() {}

// Close implements optimistic.Store.
func (s *store) Close() error {
	s.closed.Store(true)
	s.watchers.Close()
	s.leave()
	s.push.close(s.nc)
	s.end()
	return nil
}

// atOnce is how many requests of one call are under way at a time: as many as a client
// renews at once. In parts, what was read first is too old to swap on when the last part
// has come, see fresh, and each name is then read again by itself.
const atOnce = 256

// together calls f for each of n, several at a time.
func together(n int, f func(i int)) {
	if n == 1 {
		f(0)
		return
	}
	var all sync.WaitGroup
	next := make(chan int)
	for range min(n, atOnce) {
		all.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}
