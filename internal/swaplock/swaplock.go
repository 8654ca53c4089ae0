// Package swaplock is the backend of docs/internals/writing-a-store.md: locks in an
// engine that can compare and swap, and stamps each stored value with its time. It is
// only an example; no package imports it.
package swaplock

import (
	"context"
	"iter"
	"net"
	"net/rpc"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
	"github.com/pawl-go/pawl/locktable/swap/stamped"
)

// Open makes one client of the server at addr, whose clock shows whole ticks.
func Open(addr string, tick time.Duration) driver.Driver {
	s := newStore(addr, tick)
	return locktable.New(swap.New(s, "", func(driver.Signal) {}), "")
}

// store is a swap.Store over the server.
type store struct {
	addr  string
	clock swap.Clock

	mu   sync.Mutex // protects conn
	conn *rpc.Client
}

func newStore(addr string, tick time.Duration) *store {
	return &store{addr: addr, clock: swap.Clock{Tick: tick}}
}

// call makes a request. It returns when ctx ends, and the request may still arrive.
func (s *store) call(ctx context.Context, method string, question any) (Answer, error) {
	if err := ctx.Err(); err != nil {
		return Answer{}, err
	}
	conn, err := s.connect(ctx)
	if err != nil {
		return Answer{}, s.driverError(err)
	}
	sent, answer := time.Now(), new(Answer)
	request := conn.Go("Server."+method, question, answer, make(chan *rpc.Call, 1))
	select {
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	case <-request.Done:
	}
	if request.Error != nil {
		s.drop(conn)
		return Answer{}, s.driverError(request.Error)
	}
	s.clock.Learn(locktable.At(answer.Now), sent, time.Now())
	return *answer, ctx.Err()
}

func (s *store) connect(ctx context.Context) (*rpc.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", s.addr)
		if err != nil {
			return nil, err
		}
		s.conn = rpc.NewClient(c)
	}
	return s.conn, nil
}

// drop closes a connection, so that the next request dials again.
func (s *store) drop(conn *rpc.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == conn {
		_, s.conn = conn.Close(), nil
	}
}

// Time implements swap.Store.
func (s *store) Time(ctx context.Context) (swap.Window, error) {
	return s.clock.Ask(ctx, func(ctx context.Context) error {
		_, err := s.call(ctx, "Get", "")
		return err
	})
}

// Load implements swap.Store.
func (s *store) Load(ctx context.Context, names []string) ([]swap.Stored, error) {
	all := make([]swap.Stored, len(names))
	for i, name := range names {
		answer, err := s.call(ctx, "Get", name)
		if err != nil {
			return nil, err
		}
		if all[i], err = stored(answer.Value); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// note has the void versions of a value, which the swap that replaces it needs.
type note []uint64

// stored returns the value in the envelope if it was stored in time, and otherwise the
// value that it replaced.
func stored(v Value) (swap.Stored, error) {
	if v.Version == 0 {
		return swap.Stored{}, nil
	}
	e, err := stamped.Decode(v.Data)
	if err != nil {
		return swap.Stored{}, err
	}
	stamp := locktable.At(v.Stamp)
	return swap.Stored{Value: e.ValueAt(stamp), Version: v.Version, StoreState: note(e.VoidAt(v.Version, stamp))}, nil
}

// Swap implements swap.Store.
func (s *store) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	all := make([]swap.Swapped, len(swaps))
	for i, one := range swaps {
		if all[i] = s.swap(ctx, one); all[i].Err != nil && len(swaps) == 1 {
			return nil, all[i].Err
		}
	}
	return all, nil
}

func (s *store) swap(ctx context.Context, one swap.Swap) swap.Swapped {
	void, _ := one.StoreState.(note)
	envelope := stamped.Next(one, void)
	answer, err := s.call(ctx, "Put", Put{one.Name, one.Version, envelope.Append(nil)})
	if err != nil {
		return swap.Swapped{Err: err}
	}
	now, err := stored(answer.Value)
	switch {
	case err != nil:
		return swap.Swapped{Err: err}
	case !answer.Done: // another swap came first, and stored this value
		return swap.Swapped{HasStored: true, Stored: now}
	case !envelope.InsideWindow(locktable.At(answer.Value.Stamp)):
		s.clock.RecordOutside(one.Window) // the next window is wider
		return swap.Swapped{OutsideWindow: true, HasStored: true, Stored: now}
	}
	s.clock.RecordInside(one.Window)
	return swap.Swapped{Done: true, Version: now.Version, StoreState: now.StoreState}
}

// Scan implements swap.Store.
func (s *store) Scan(ctx context.Context, prefix string) iter.Seq2[swap.Named, error] {
	return func(yield func(swap.Named, error) bool) {
		list, err := s.call(ctx, "List", prefix)
		if err != nil {
			yield(swap.Named{}, err)
			return
		}
		for _, name := range list.Names {
			row := swap.Named{Name: name}
			answer, err := s.call(ctx, "Get", name)
			if err != nil {
				yield(swap.Named{}, err)
				return
			}
			row.Now = locktable.At(answer.Now)
			row.Stored, err = stored(answer.Value)
			if !yield(row, err) {
				return
			}
		}
	}
}

// driverError adds the server and a hint to an error.
func (s *store) driverError(err error) error {
	return &driver.Error{Backend: "swaps " + s.addr, Err: err, Hint: "look at the server and the network"}
}

// Properties implements swap.Store.
func (s *store) Properties() driver.Properties {
	return driver.Properties{
		Backend: "swaps", Location: "swaps " + s.addr, Clock: driver.ClockServer, MinTTL: max(driver.MinTTL, 4*s.clock.Tick),
		MaxOverrun:    s.clock.MaxWindow(),
		FenceSurvives: "the loss of all values, if it takes longer than two ticks, and the server's clock is not set back",
	}
}

// DelaysWrites implements swap.DelayedWriter: the server's clock stands still for a tick,
// and a swap given up during a tick may take effect until it ends.
func (s *store) DelaysWrites() {}

// Close implements swap.Store.
func (s *store) Close() error {
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	if conn != nil {
		s.drop(conn)
	}
	return nil
}
