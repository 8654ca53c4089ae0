package natslock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/optimistic"
)

// push is the way that signals take: plain messages to the inbox of the client that they
// are for. They may be lost, as with any plain message; then the waiter asks again when
// the holder's lease or its own place runs out.
type push struct {
	inbox   string
	inboxes *nats.Subscription // nil if there is no push
	status  chan nats.Status
	loops   sync.WaitGroup
	heard   chan struct{} // holds one when our own message came back
	deaf    atomic.Bool   // it did not
}

// listen begins to hand signals for the inbox to a driver. After a connection was lost
// the server that answers may be another one, or have lost data, and signals may have
// been missed.
func (s *store) listen(inbox string, t *optimistic.Table, d *locktable.Driver) {
	p := &s.push
	p.inbox, p.heard = inbox, make(chan struct{}, 1)
	if !s.o.NoPush {
		p.inboxes, _ = s.nc.Subscribe(inbox, func(m *nats.Msg) { p.receive(m.Data, d) })
	}
	p.status = s.nc.StatusChanged(nats.CONNECTED, nats.DISCONNECTED, nats.RECONNECTING)
	p.loops.Go(func() {
		for status := range p.status {
			s.clock.Forget()
			t.Forget()
			s.stamps.missed.Store(0)
			if status == nats.CONNECTED {
				d.Deliver(driver.Signal{Kind: driver.SignalLook})
				s.watchers.NotifyAll() // what came meanwhile was missed
			}
		}
	})
}

func (p *push) works() bool { return p.inboxes != nil && !p.deaf.Load() }

// probe sends ourselves a message: who may not publish to inboxes does not get it.
func (p *push) probe(ctx context.Context, nc *nats.Conn) {
	if p.inboxes == nil || nc.Publish(p.inbox, nil) != nil || nc.FlushWithContext(ctx) != nil {
		return
	}
	late := time.NewTimer(lookWhyAfter)
	defer late.Stop()
	select {
	case <-p.heard:
		p.deaf.Store(false)
	case <-late.C:
		p.deaf.Store(true)
	case <-ctx.Done():
	}
}

func (p *push) receive(data []byte, d *locktable.Driver) {
	if len(data) == 0 {
		select {
		case p.heard <- struct{}{}:
		default:
		}
		return
	}
	if s, ok := engine.DecodeSignal(string(data)); ok {
		d.Deliver(s)
	}
}

func (p *push) close(nc *nats.Conn) {
	if p.inboxes != nil {
		_ = p.inboxes.Unsubscribe() // the connection is closed already, at worst
	}
	nc.RemoveStatusListener(p.status)
	p.loops.Wait()
}

// signal sends signals to others.
func (s *store) signal(signals []locktable.Signal) {
	for _, to := range signals {
		_ = s.nc.Publish(to.Inbox, []byte(engine.EncodeSignal(to.Signal))) // it may be lost
	}
}
