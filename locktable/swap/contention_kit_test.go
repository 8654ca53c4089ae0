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
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

// The steps that all tests share.
var noError = basictest.NoError

func must[T any](v T, err error) func(basictest.TB) T { return basictest.Must(v, err) }

// A farValues is a client of values whose messages take a while, each way.
type farValues struct {
	*valuesClient
	network
	loads, swaps, vain atomic.Int64
	arrives            func(swap.Swap) // when a swap does, if it is not nil
}

// A network delays messages by a random time between low and high.
type network struct {
	low, high time.Duration

	mu   *sync.Mutex // protects dice
	dice *rand.Rand
}

func newNetwork(low, high time.Duration, seed uint64) network {
	return network{low, high, &sync.Mutex{}, rand.New(rand.NewPCG(seed, 1))}
}

func (n *network) travel() {
	n.mu.Lock()
	d := n.low + time.Duration(n.dice.Int64N(int64(n.high-n.low)+1))
	n.mu.Unlock()
	time.Sleep(d)
}

// there runs f at the store and returns its answer. A caller that gives up does not get
// it, but the store has done it all the same.
func there[T any](ctx context.Context, n *network, f func(context.Context) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	in := make(chan answer, 1)
	go func() {
		n.travel()
		v, err := f(context.WithoutCancel(ctx))
		n.travel()
		in <- answer{v, err}
	}()
	select {
	case a := <-in:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func (f *farValues) Load(ctx context.Context, names []string) ([]swap.Stored, error) {
	f.loads.Add(1)
	return there(ctx, &f.network, func(ctx context.Context) ([]swap.Stored, error) { return f.valuesClient.Load(ctx, names) })
}

func (f *farValues) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	f.swaps.Add(1)
	return there(ctx, &f.network, func(ctx context.Context) ([]swap.Swapped, error) {
		if f.arrives != nil {
			f.arrives(swaps[0])
		}
		done, err := f.valuesClient.Swap(ctx, swaps)
		for _, d := range done {
			if !d.Done {
				f.vain.Add(1)
			}
		}
		return done, err
	})
}

// openFar makes one more client, which is far away.
func (v *values) openFar(inbox string, n network) (*locktable.Driver, *farValues) {
	store := &farValues{valuesClient: &valuesClient{v, inbox}, network: n}
	var d *locktable.Driver
	d = locktable.New(swap.New(store, inbox, func(s driver.Signal) { d.Deliver(s) }), inbox)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clients[inbox] = d
	return d, store
}

// touch replaces the stored value of a name by another one with the same content: another
// client was quicker.
func (v *values) touch(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last++
	is := v.stored[name]
	is.Version = v.last
	v.stored[name] = is
}

// A crowd is some processes that want one name, over a store that is far away.
type crowd struct {
	processes int
	trip      time.Duration // there and back, on average: from a tenth to nearly twice as much
	ttl       time.Duration
	hold      time.Duration // of each lease, from a half to one and a half
	lasts     time.Duration
	seed      uint64
}

// A tally counts the results of a crowd.
type tally struct {
	granted, lost      atomic.Int64
	loads, swaps, vain int64
}

// live lets the crowd work.
func (c crowd) live() (*tally, error) {
	defer backoff.Seed(c.seed)()
	sum, n := &tally{}, newNetwork(c.trip/10, c.trip*9/10, c.seed)
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
		all.Go(func() { c.work(ctx, client, sum) })
	}
	all.Wait()
	for i, s := range stores {
		_ = clients[i].Close()
		sum.loads, sum.swaps, sum.vain = sum.loads+s.loads.Load(), sum.swaps+s.swaps.Load(), sum.vain+s.vain.Load()
	}
	time.Sleep(time.Minute) // until what was given up has arrived
	return sum, nil
}

// work takes the lock again and again.
func (c crowd) work(ctx context.Context, client *pawl.Client, sum *tally) {
	for ctx.Err() == nil {
		l, err := client.Mutex("job").Lock(ctx)
		if err != nil {
			continue
		}
		sum.granted.Add(1)
		select {
		case <-time.After(backoff.Jitter(c.hold)):
		case <-l.Context().Done():
		}
		if errors.Is(l.Release(context.Background()), pawl.ErrLost) {
			sum.lost.Add(1)
		}
		time.Sleep(backoff.Jitter(c.trip))
	}
}
