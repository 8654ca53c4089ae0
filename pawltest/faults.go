package pawltest

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// errDown is the error of Fail without an error.
var errDown = errors.New("pawltest: the backend is down")

// Fail makes each request of these clients fail with err until Restore; a nil err means
// an error of pawltest. The backend pushes nothing to them meanwhile. Without clients,
// Fail affects all clients, even later ones. It replaces their earlier fault.
func (b *Backend) Fail(err error, clients ...*pawl.Client) {
	if err == nil {
		err = errDown
	}
	b.setFault(fault{err: err}, clients)
}

// Hang makes each request of these clients wait until Restore, or until its caller gives
// up. The backend pushes nothing to them meanwhile. Without clients, Hang affects all
// clients, even later ones. It replaces their earlier fault.
func (b *Backend) Hang(clients ...*pawl.Client) {
	b.setFault(fault{hang: make(chan struct{})}, clients)
}

// Delay makes each answer to these clients arrive d late, until Restore. The backend acts
// on the request at once. Without clients, Delay affects all clients, even later ones. It
// replaces their earlier fault.
func (b *Backend) Delay(d time.Duration, clients ...*pawl.Client) {
	b.setFault(fault{delay: d}, clients)
}

// Restore ends the faults that Fail, Hang and Delay began, for all clients.
func (b *Backend) Restore() { b.setFault(fault{}, nil) }

func (b *Backend) setFault(f fault, clients []*pawl.Client) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(clients) == 0 {
		b.defaultFault = f
		for _, p := range b.clients {
			p.setFault(f)
		}
		return
	}
	for _, c := range clients {
		p := b.clients[c]
		if p == nil {
			b.t.Errorf("pawltest: %v is no client that Backend.Client made", c)
			continue
		}
		p.setFault(f)
	}
}

// Forget makes the backend lose its data: leases, queues, values and the last fences. A
// holder detects the loss at its next renewal, within a third of the TTL. Later fences
// are still greater, because they follow the time.
func (b *Backend) Forget() { b.memory.Forget() }

// Jump moves the backend's clock by d, which may be negative. The clients' own clocks do
// not move.
func (b *Backend) Jump(d time.Duration) { b.clockOffset.Add(int64(d)) }

// Expire ends all leases on a name as if they had not been renewed in time. The name goes
// to the next in the queue at once. The holders detect the loss at their next renewal,
// within a third of the TTL, as after a pause. The test fails if the name is not held.
// name is as it is stored; see [pawl.Client.StoredName].
func (b *Backend) Expire(name string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	ended := 0
	for _, p := range b.clients {
		for _, token := range p.tokensOf(name) {
			if p.Driver.Release(context.Background(), driver.LeaseRef{Name: name, Token: token}) == nil {
				ended++
			}
		}
	}
	if ended == 0 {
		b.t.Errorf("pawltest: nobody holds %q, so no lease on it can expire", name)
	}
}

// Break takes a name from all its holders, as an operator does. Their clients notify them
// at once, and the next in the queue gets the name. The test fails if the name is not
// held. name is as it is stored; see [pawl.Client.StoredName].
func (b *Backend) Break(name string) {
	b.t.Helper()
	e := b.entry(name)
	for _, h := range e.Holders {
		if err := b.driver.Break(context.Background(), name, h.Fence, 0, driver.Owner{Client: "pawltest"}); err != nil {
			b.t.Errorf("pawltest: break %q: %v", name, err)
		}
	}
	if len(e.Holders) == 0 {
		b.t.Errorf("pawltest: nobody holds %q, so it cannot be broken", name)
	}
}
