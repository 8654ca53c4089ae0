package natslock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

// push is the state of a client's signals. A signal is a plain message to the inbox of
// its client, so it may be lost. Then the waiter retries before the holder's lease or its
// own place expires.
type push struct {
	inbox          string
	inboxSub       *nats.Subscription // nil without push
	statusChanges  chan nats.Status
	loops          sync.WaitGroup
	echoes         atomic.Int64 // the number of the driver's own messages that have arrived
	expectedEchoes atomic.Int64 // the inbox does not work while fewer of these messages have arrived
}

// listen begins to deliver the signals of the inbox to a driver. After a loss of the
// connection, signals may be lost, and the next server may be another one, or have lost
// data. So the store drops the known values, and all claims retry.
func (s *store) listen(inbox string, t *swap.Table, d *locktable.Driver) {
	p := &s.push
	p.inbox = inbox
	if !s.options.NoPush {
		p.inboxSub, _ = s.nc.Subscribe(inbox, func(m *nats.Msg) { p.receive(m.Data, d) })
	}
	p.statusChanges = s.nc.StatusChanged(nats.CONNECTED, nats.DISCONNECTED, nats.RECONNECTING)
	p.loops.Go(func() {
		for status := range p.statusChanges {
			s.clock.Forget()
			t.Forget()
			s.missedStamps.Store(0)
			if status == nats.CONNECTED {
				d.Deliver(driver.Signal{Kind: driver.SignalRetry}) // the watches, too, have missed changes
			}
		}
	})
}

func (p *push) works() bool { return p.inboxSub != nil && p.echoes.Load() >= p.expectedEchoes.Load() }

const (
	// echoTimeout is the time in which the driver's own message must arrive after the
	// server has received it.
	echoTimeout = 200 * time.Millisecond

	// probeTimeout is the time in which the server must receive that message.
	probeTimeout = 5 * time.Second
)

// probe sends a message to the driver's own inbox. If the user may not publish to
// inboxes, the message does not arrive. A message that arrives late counts, too.
func (p *push) probe(ctx context.Context, nc *nats.Conn) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout) // nats.go does not flush without a deadline
	defer cancel()
	next := p.echoes.Load() + 1
	if p.inboxSub == nil || nc.Publish(p.inbox, nil) != nil || nc.FlushWithContext(ctx) != nil {
		return
	}
	for until := time.Now().Add(echoTimeout); p.echoes.Load() < next && time.Now().Before(until); {
		if backoff.Wait(ctx, time.Millisecond) != nil {
			return
		}
	}
	p.expectedEchoes.Store(next)
}

func (p *push) receive(data []byte, d *locktable.Driver) {
	if len(data) == 0 {
		p.echoes.Add(1)
		return
	}
	if s, ok := engine.DecodeSignal(string(data)); ok {
		d.Deliver(s)
	}
}

func (p *push) close(nc *nats.Conn) {
	if p.inboxSub != nil {
		_ = p.inboxSub.Unsubscribe() // at worst the connection is closed already
	}
	nc.RemoveStatusListener(p.statusChanges)
	p.loops.Wait()
}

func (s *store) sendSignals(signals []locktable.Signal) {
	for _, to := range signals {
		_ = s.nc.Publish(to.Inbox, []byte(engine.EncodeSignal(to.Signal))) // a signal may be lost
	}
}
