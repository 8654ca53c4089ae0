package memlock

import (
	"context"
	"hash/maphash"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/access"
	"github.com/pawl-go/pawl/locktable"
)

// Memory is one lock server in memory. Its drivers are its clients.
type Memory struct{ table table }

// NewMemory makes an empty Memory.
func NewMemory(o *Options) *Memory {
	m := &Memory{table{seed: maphash.MakeSeed()}}
	if o != nil {
		m.table.now = o.Now
	}
	if m.table.now == nil {
		start := time.Now()
		m.table.now = func() time.Time { return start.Round(0).Add(time.Since(start)) }
	}
	return m
}

// Driver makes a client of m.
func (m *Memory) Driver() driver.Driver {
	inbox := strconv.FormatInt(m.table.lastInbox.Add(1), 10)
	d := locktable.NewGrouped(&client{&m.table, inbox}, inbox)
	m.table.drivers.Store(inbox, d)
	return d
}

// Forget empties the memory, like a server that loses its data. It is for tests. It sends
// no signal; a holder detects the loss with its next renewal.
func (m *Memory) Forget() {
	for i := range m.table.shards {
		m.table.shards[i].clear()
	}
}

// New makes a Memory, and its only client.
func New(o *Options) driver.Driver { return NewMemory(o).Driver() }

// client has the table of a Memory, and the inbox of one of its drivers.
type client struct {
	*table
	inbox string
}

// Close removes the client's inbox. The Memory and its other clients stay.
func (c *client) Close() error {
	c.drivers.Delete(c.inbox)
	return nil
}

// namedMemories has each *Memory that was opened by a name in a URL. They last as long as
// the process, so that all callers that open "mem:jobs" share locks.
var namedMemories sync.Map

// "mem:" opens a new Memory, and "mem:NAME" the Memory that all callers with that name
// share.
func init() {
	access.Table = func(memory any) any { return &client{&memory.(*Memory).table, ""} } //nolint:forcetypeassert // always a *Memory
	driver.Register("mem", func(_ context.Context, u *url.URL) (driver.Driver, error) {
		if u.Host != "" || u.Path != "" || u.User != nil || u.Fragment != "" {
			return nil, &driver.InvalidError{Argument: "mem URL", Problem: "has more than a name", Allowed: "mem: or mem:NAME"}
		}
		if _, err := driver.URLParameters(u, "mem URL", nil); err != nil {
			return nil, err
		}
		if u.Opaque == "" {
			return New(nil), nil
		}
		m, _ := namedMemories.LoadOrStore(u.Opaque, NewMemory(nil))
		return m.(*Memory).Driver(), nil //nolint:forcetypeassert // namedMemories has only these
	})
}
