package mysqllock

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// A poller makes signals where the server has none: it looks at the entries of the names
// that claims of this process wait for, and at what the process has lost. One goroutine
// does that for all of them, in one statement a look that locks nothing and writes
// nothing.
//
// A grant stands in the entry, so whoever passes a name on writes nothing more than that,
// and what is told of it is never sooner than its commit. It may be late, also by far
// where reads are answered by a replica; a client knows what to make of that.
type poller struct {
	store   *store
	deliver func(driver.Signal)

	hurry   chan struct{}   // has room for one: the pace has changed
	closed  context.Context // done when the driver is closed
	end     context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex // protects the rest
	queue  map[string]*queued
	leases map[driver.Token]time.Time // ours, and when they end if nobody renews them
	asked  time.Time                  // when it was last looked for what we lost
	failed int                        // how many looks have failed in a row
	rests  time.Time                  // until then it does not look, for the last one failed
	idle   bool                       // the goroutine sleeps until hurried
}

// queued is a name that claims of ours wait for.
type queued struct {
	places map[driver.Token]time.Time // and when they lapse
	ahead  int                        // how many stand ahead of the first of them
	fence  uint64                     // the last one granted
	opens  opening                    // what was last told of
	crowd  bool                       // its queue is long
	moved  time.Time                  // when something was last seen to happen
	looked time.Time
	pause  time.Duration // until the next look
}

// An opening is an instant at which a name opens by itself, for the head of its queue.
type opening struct {
	head driver.Token
	at   locktable.Instant
}

const (
	quick   = 5 * time.Millisecond
	patient = 250 * time.Millisecond
	losses  = 500 * time.Millisecond // how often a process that holds leases looks for what it lost
	longest = time.Second            // between looks that fail
)

func newPoller(s *store, deliver func(driver.Signal)) *poller {
	p := &poller{
		store: s, deliver: deliver, hurry: make(chan struct{}, 1),
		queue: map[string]*queued{}, leases: map[driver.Token]time.Time{},
	}
	p.closed, p.end = context.WithCancel(context.Background())
	p.running.Go(p.run)
	return p
}

func (p *poller) close() {
	p.end()
	p.running.Wait()
}

// waits notes that a claim has a place in the queue of its name.
func (p *poller) waits(c *driver.Claim, held *driver.HeldError, sent time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	q := p.queue[c.Name]
	if q == nil {
		q = &queued{places: map[driver.Token]time.Time{}, looked: now, moved: now, ahead: held.Position - 1}
		p.queue[c.Name] = q
	}
	if _, known := q.places[c.Token]; !known || q.fence != held.Fence {
		q.moved = now
	}
	q.places[c.Token] = sent.Add(c.QueueTTL)
	q.ahead, q.fence = min(q.ahead, held.Position-1), held.Fence
	q.crowd = q.crowd || held.Position > crowd
	q.pace(now)
	p.wake()
}

// left notes that a claim waits no more.
func (p *poller) left(name string, token driver.Token) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leave(name, token)
}

func (p *poller) leave(name string, token driver.Token) {
	if q := p.queue[name]; q != nil {
		if delete(q.places, token); len(q.places) == 0 {
			delete(p.queue, name)
		}
	}
}

// holds notes a lease that ends then.
func (p *poller) holds(token driver.Token, end time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leases[token] = end
	if p.idle {
		p.wake()
	}
}

// gone notes that a token neither holds nor waits.
func (p *poller) gone(name string, token driver.Token) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.leases, token)
	p.leave(name, token)
}

func (p *poller) wake() {
	select {
	case p.hurry <- struct{}{}:
	default:
	}
}

// pace says when to look next at a name. The pause is an eighth of the time since
// something last happened to it: so a hand-over is found after an eighth of what it took,
// or after 5 ms, and who waits for long costs next to nothing. Those further behind in
// the queue have no need to look as often as its head.
func (q *queued) pace(now time.Time) {
	d := max(now.Sub(q.moved)/8, quick*time.Duration(1+max(0, q.ahead)))
	if d >= patient {
		d = patient + backoff.Below(patient/8) // no more than four a second
	} else {
		d -= backoff.Below(d / 4)
	}
	q.pause = d
}

func (q *queued) next() time.Time { return q.looked.Add(q.pause) }

// run looks for as long as the driver is open.
func (p *poller) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if d, ok := p.pause(time.Now()); ok {
			timer.Reset(d)
		} else {
			timer.Stop()
		}
		select {
		case <-p.closed.Done():
			return
		case <-p.hurry:
		case <-timer.C:
			p.look()
		}
	}
}

// pause is how long it is to the next look; not ok is until hurried.
func (p *poller) pause(now time.Time) (d time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var next time.Time
	for _, q := range p.queue {
		if t := q.next(); next.IsZero() || t.Before(next) {
			next = t
		}
	}
	if t := p.asked.Add(losses); len(p.leases) > 0 && (next.IsZero() || t.Before(next)) {
		next = t
	}
	p.idle = next.IsZero()
	if next.Before(p.rests) {
		next = p.rests
	}
	return max(0, next.Sub(now)), !p.idle
}

// due are the names to look at now. A name whose turn is not yet comes along if half of
// the pause is over, its own or that of the one that is due: so those that are looked at
// seldom are soon looked at together. There is nothing to look for without a name and
// without a lease.
func (p *poller) due(now time.Time) (names []string, some bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	shortest := time.Hour
	for name, q := range p.queue {
		maps.DeleteFunc(q.places, func(_ driver.Token, lapses time.Time) bool { return !lapses.After(now) })
		if len(q.places) == 0 {
			delete(p.queue, name)
		} else if !q.next().After(now) {
			shortest = min(shortest, q.pause)
		}
	}
	for name, q := range p.queue {
		if now.Sub(q.looked) >= min(shortest, q.pause)/2 && len(names) < mostNames {
			q.looked = now
			names = append(names, name)
		}
	}
	if len(p.queue) == 0 { // else it is asked for what we lost all the same
		maps.DeleteFunc(p.leases, func(_ driver.Token, end time.Time) bool { return !end.After(now) })
	}
	p.asked = now
	return names, len(names)+len(p.leases) > 0
}

// mostNames is how many names are looked at in one statement; of more each gets a turn.
const mostNames = 512

// look looks once, and delivers what there is to tell. It reports no error: whoever waits
// asks by itself now and then, and hears what is wrong.
func (p *poller) look() {
	now := time.Now()
	names, some := p.due(now)
	if !some {
		return
	}
	ctx, cancel := context.WithTimeout(p.closed, 5*time.Second)
	defer cancel()
	seen, still := map[string]*locktable.Entry{}, map[string]bool{}
	var signals []driver.Signal
	var read []string
	err := p.store.do(ctx, func(ctx context.Context) error {
		clear(seen)
		clear(still)
		signals, read = nil, nil
		return p.store.query(ctx, p.statement(names), func(rows *sql.Rows) error {
			var kind int
			var name, value []byte
			if err := rows.Scan(&kind, &name, &value); err != nil {
				return err
			}
			if kind == 0 && value == nil {
				still[string(name)] = true
				return nil
			}
			if kind == 0 {
				// It is nil if it is damaged, which their next call says.
				seen[string(name)], _ = locktable.Decode(value)
				return nil
			}
			s := driver.Signal{Kind: driver.SignalLost}
			copy(s.Token[:], value)
			signals, read = append(signals, s), append(read, string(name))
			return nil
		})
	})
	if p.note(err); err != nil {
		return
	}
	if len(read) > 0 {
		_, _ = p.store.exec(ctx, "DELETE FROM "+p.store.lost+" WHERE id IN ("+strings.Join(read, ", ")+")")
	}
	for _, s := range slices.Concat(p.compare(names, seen, still, now), signals) {
		p.deliver(s)
	}
}

// note has the next look come later after one that failed, each time twice as much: it
// may have dialled a server that is down.
func (p *poller) note(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.failed, p.rests = 0, time.Time{}
		return
	}
	p.rests = time.Now().Add(backoff.Around(backoff.Doubled(2*quick, p.failed, longest)))
	p.failed++
}

// statement asks for what was lost, and for the entries of some names.
func (p *poller) statement(names []string) string {
	s := "SELECT 1, CAST(id AS CHAR), token FROM " + p.store.lost + " WHERE inbox = " + blob(p.store.inbox)
	crowded := p.crowded(names)
	var whole []string
	for _, name := range names {
		if same := crowded[name]; same != "" {
			s += " UNION ALL SELECT 0, name, IF(" + same + ", NULL, entry) FROM " + p.store.names + " WHERE name = " + blob(name)
		} else {
			whole = append(whole, name)
		}
	}
	if len(whole) > 0 {
		s += " UNION ALL SELECT 0, name, entry FROM " + p.store.names + " WHERE name IN (" + blobs(whole) + ")"
	}
	return s
}

// crowded are those of some names whose queue is long, each with the condition that
// nothing has happened to it that concerns ours: no more was granted, it does not open by
// itself, and they are still there. Then the server keeps the entry to itself, which
// hundreds of others who keep their places change all the time.
func (p *poller) crowded(names []string) map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	same := map[string]string{}
	for _, name := range names {
		q := p.queue[name]
		if q == nil || !q.crowd || len(q.places) > crowd || len(same) == mostCrowded {
			continue
		}
		condition := fmt.Sprintf("fence = %d AND holders <> '' AND LOCATE('(released)', holders) = 0", q.fence)
		for token := range q.places {
			condition += " AND LOCATE(" + blob(token[:]) + ", entry)"
		}
		same[name] = condition
	}
	return same
}

const (
	crowd       = 8  // waiters are not many
	mostCrowded = 64 // names are looked at so in one statement
)

// compare finds out what became of those who wait, except where all is still as it was.
func (p *poller) compare(names []string, seen map[string]*locktable.Entry, still map[string]bool, now time.Time) (signals []driver.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range names {
		q := p.queue[name]
		if q == nil {
			continue
		}
		if still[name] {
			q.pace(now)
			continue
		}
		e := seen[name]
		if e != nil && e.Fence != q.fence {
			q.fence, q.moved = e.Fence, now
		}
		q.crowd = e != nil && len(e.Queue) > crowd
		q.ahead = 1 << 20
		for token, lapses := range q.places {
			s, waits := q.found(e, token)
			switch {
			case !waits:
				signals = append(signals, s)
				p.leave(name, token)
				p.leases[token] = lapses // if it was granted
			case e != nil:
				if o := (opening{head: token, at: engine.OpensAt(e, token)}); o.at != 0 && o != q.opens {
					signals, q.opens = append(signals, s), o
				}
			}
		}
		q.pace(now)
	}
	return signals
}

// found looks for a token in an entry: it waits still, or was granted, or something else
// happened, and it has to ask.
func (q *queued) found(e *locktable.Entry, token driver.Token) (s driver.Signal, waits bool) {
	s = driver.Signal{Kind: driver.SignalLook, Token: token}
	if e == nil {
		return s, false
	}
	for i := range e.Queue {
		if e.Queue[i].Token == token {
			q.ahead = min(q.ahead, i)
			return s, true
		}
	}
	for _, h := range e.Holders {
		if h.Token == token {
			return driver.Signal{Kind: driver.SignalGranted, Token: token, Fence: h.Fence, Fences: h.Fences}, false
		}
	}
	return s, e.Rest.Len > 0
}
