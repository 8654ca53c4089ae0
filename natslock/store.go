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

// store is a bucket. It implements optimistic.Store. The version of a value is its
// sequence in the bucket's stream, and the note has the void sequences before it.
type store struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	o      Options
	stream string // the name of the bucket's stream
	prefix string // begins the subjects of the bucket's keys
	puts   string // begins the subjects to which the driver sends the keys' messages
	clock  optimistic.Clock
	bucket bucket
	push   push
	stamps stamps
	own    bool // whether the driver opened the connection
	end    func()

	reads, writes unansweredTime
	trip          atomic.Int64 // the time until the last answer, as a time.Duration

	watchers    driver.Watchers
	watchesDown atomic.Int64    // the number of watched names that have no working subscription now
	life        context.Context // ends all watches
	endWatches  context.CancelFunc

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
	if o.Domain != "" { // the plain subject leads to the connection's own domain only
		s.puts = s.api(s.prefix)
	}
	s.bucket.turn = make(chan struct{}, 1)
	s.life, s.endWatches = context.WithCancel(context.Background())
	s.watchers.Follow(s.followName)
	return s, nil
}

// Time implements optimistic.Store. The driver learns the server's clock from the stamps
// of its own swaps. It asks the stream for the time if the last stamp is old, and for the
// configuration once a minute.
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
	if errors.Is(err, jetstream.ErrStreamNotFound) { // the bucket was deleted
		s.bucket.forgetConfig()
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
	return s.storeConfig(&info.Config) // an operator may have changed it since
}

// Load implements optimistic.Store.
func (s *store) Load(ctx context.Context, names []string) ([]optimistic.Stored, error) {
	// Ask for the time first, if it is not known. On a slow link, values that were read
	// before the time would be too old, see maxValueAge.
	if _, err := s.Time(ctx); err != nil {
		return nil, err
	}
	all, errs := make([]optimistic.Stored, len(names)), make([]error, len(names))
	inParallel(len(names), func(i int) { all[i], errs[i] = s.load(ctx, names[i]) })
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
	inParallel(len(swaps), func(i int) {
		var err error
		if all[i], err = s.swap(ctx, &swaps[i]); err != nil {
			all[i] = optimistic.Swapped{Err: err}
		}
	})
	return all, nil
}

// swap publishes the new value, and then decides by its stamp whether it counts.
func (s *store) swap(ctx context.Context, swap *optimistic.Swap) (optimistic.Swapped, error) {
	if err := s.ready(ctx); err != nil {
		return optimistic.Swapped{}, err
	}
	if !isFresh(swap) {
		return optimistic.Swapped{}, nil
	}
	if err := s.noRoomFor(swap); err != nil {
		return optimistic.Swapped{}, err
	}
	w := write(swap)
	stamps := s.listenForStamp(w.key)
	defer stamps.stop()
	var err error
	switch w.sequence, err = s.publish(ctx, s.message(w, swap.Version)); {
	case codeOf(err) == codeNoMessageTTL: // another client has made the bucket again since
		s.bucket.forgetConfig()
		return optimistic.Swapped{}, nil
	case isWrongSequence(err):
		return optimistic.Swapped{}, nil
	case errors.Is(err, nats.ErrNoResponders) && s.bucket.undeliveredSwaps.Add(1) < maxUndeliveredSwaps:
		s.clock.Late(swap.Window) // no server received the swap: there is no leader now, or no bucket
		return optimistic.Swapped{Late: true}, nil
	case err != nil:
		return optimistic.Swapped{}, err
	}
	s.bucket.undeliveredSwaps.Store(0)
	w.acked = time.Now()
	done, err := s.decide(ctx, w, stamps)
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
		for some := range slices.Chunk(names, maxConcurrentRequests) {
			all, errs := make([]optimistic.Stored, len(some)), make([]error, len(some))
			inParallel(len(some), func(i int) { all[i], errs[i] = s.load(ctx, some[i]) })
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

// names returns the names with a prefix, sorted.
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
		FenceSurvives: driver.FencesRiseByClock,
		MinTTL:        driver.MinTTL,
		PushesGrants:  s.push.works(),
		PushesChanges: s.pushesChanges(),
	}
}

// Lingers implements optimistic.Lingerer. A write that the client gave up may be in the
// log of the next leader, while the old leader, which was cut off, answers that the key
// has no message.
func (s *store) Lingers() {}

// Close implements optimistic.Store.
func (s *store) Close() error {
	s.closed.Store(true)
	s.watchers.Close()
	s.endWatches()
	s.push.close(s.nc)
	s.end()
	return nil
}

// maxConcurrentRequests is the largest number of concurrent requests of one call. A
// client renews as many leases at once. With fewer requests, the first values would be
// too old to swap when the last values arrive, see maxValueAge, and the driver would read
// each name again by itself.
const maxConcurrentRequests = 256

// inParallel calls f for each number below n, several at a time.
func inParallel(n int, f func(i int)) {
	if n == 1 {
		f(0)
		return
	}
	var all sync.WaitGroup
	next := make(chan int)
	for range min(n, maxConcurrentRequests) {
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
