package swap_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

// noError and must check the errors of steps that a test expects to succeed.
var noError = basictest.NoError

func must[T any](v T, err error) func(basictest.TB) T { return basictest.Must(v, err) }

// farValues is a client of values whose messages take some time, each way.
type farValues struct {
	*valuesClient
	network
	loads, swaps, failed atomic.Int64
	onArrival            func(swap.Swap) // is called when a swap arrives, if not nil
}

// A network delays messages by a random time between low and high.
type network struct {
	low, high time.Duration

	mu     *sync.Mutex // protects random
	random *rand.Rand
}

func newNetwork(low, high time.Duration, seed uint64) network {
	return network{low, high, &sync.Mutex{}, rand.New(rand.NewPCG(seed, 1))}
}

func (n *network) delay() {
	n.mu.Lock()
	d := n.low + time.Duration(n.random.Int64N(int64(n.high-n.low)+1))
	n.mu.Unlock()
	time.Sleep(d)
}

// atStore runs f at the store, and returns its answer. If ctx ends first, f still runs.
func atStore[T any](ctx context.Context, n *network, f func(context.Context) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		n.delay()
		v, err := f(context.WithoutCancel(ctx))
		n.delay()
		answers <- answer{v, err}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func (f *farValues) Load(ctx context.Context, names []string) ([]swap.Stored, error) {
	f.loads.Add(1)
	return atStore(ctx, &f.network, func(ctx context.Context) ([]swap.Stored, error) { return f.valuesClient.Load(ctx, names) })
}

func (f *farValues) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	f.swaps.Add(1)
	return atStore(ctx, &f.network, func(ctx context.Context) ([]swap.Swapped, error) {
		if f.onArrival != nil {
			f.onArrival(swaps[0])
		}
		done, err := f.valuesClient.Swap(ctx, swaps)
		for _, d := range done {
			if !d.Done {
				f.failed.Add(1)
			}
		}
		return done, err
	})
}

// openFar makes another client, whose messages go through n.
func (v *values) openFar(inbox string, n network) (*locktable.Driver, *farValues) {
	store := &farValues{valuesClient: &valuesClient{v, inbox}, network: n}
	return v.connect(inbox, store).Driver, store
}

// touch gives the stored value of a name a new version, as if another client had swapped
// it.
func (v *values) touch(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last++
	stored := v.stored[name]
	stored.Version = v.last
	v.stored[name] = stored
}

// A contention is a run of processes that want one name, in a distant store.
type contention struct {
	processes int
	trip      time.Duration // the average round trip; it varies from a tenth to nearly twice as much
	ttl       time.Duration
	hold      time.Duration // the time of each lease; it varies from a half to one and a half
	lasts     time.Duration
	seed      uint64
}

// results are the counts of a contention.
type results struct {
	granted, lost        atomic.Int64
	loads, swaps, failed int64
}

// run runs the processes.
func (c contention) run() (*results, error) {
	defer backoff.Seed(c.seed)()
	total, n := &results{}, newNetwork(c.trip/10, c.trip*9/10, c.seed)
	v := newValues(time.Now, max(50*time.Millisecond, 4*c.trip))
	ctx, cancel := context.WithTimeout(context.Background(), c.lasts)
	defer cancel()
	var all sync.WaitGroup
	var clients []*pawl.Client
	var stores []*farValues
	for i := range c.processes {
		d, store := v.openFar(fmt.Sprint("client", i), n)
		client, err := pawl.New(d, &pawl.Options{TTL: c.ttl, HandoffWindow: -1})
		if err != nil {
			return nil, err
		}
		clients, stores = append(clients, client), append(stores, store)
		all.Go(func() { c.work(ctx, client, total) })
	}
	all.Wait()
	for i, s := range stores {
		_ = clients[i].Close()
		total.loads, total.swaps, total.failed = total.loads+s.loads.Load(), total.swaps+s.swaps.Load(), total.failed+s.failed.Load()
	}
	time.Sleep(time.Minute) // until abandoned requests have arrived
	return total, nil
}

// work takes and releases the lock until ctx ends.
func (c contention) work(ctx context.Context, client *pawl.Client, total *results) {
	for ctx.Err() == nil {
		l, err := client.Mutex("job").Lock(ctx)
		if err != nil {
			continue
		}
		total.granted.Add(1)
		select {
		case <-time.After(backoff.Jitter(c.hold)):
		case <-l.Context().Done():
		}
		if errors.Is(l.Release(context.Background()), pawl.ErrLost) {
			total.lost.Add(1)
		}
		time.Sleep(backoff.Jitter(c.trip))
	}
}
