package sim

import (
	"context"
	"sync"

	"github.com/pawl-go/pawl/driver"
)

// turns records the names that each call of All holds and waits for. A call holds no name
// while it waits, and does not starve: after it gave back its names eight times, it waits
// once for each name, and keeps the previous ones.
type turns struct {
	mu      sync.Mutex // protects all, and each turn
	byToken map[driver.Token]*turn
	inOrder int // the number of calls that held names while they waited
}

// politeRounds is the number of times that a call gives back a granted lock.
const politeRounds = 8

// A turn is one call of All.
type turn struct {
	c                 *call
	over              bool
	waited            map[driver.Token]bool // the claims that have stood in a queue
	held              map[driver.Token]bool
	givenBack         int // how many times it gave back all names
	holdsWhileWaiting bool
}

// turnKey is the key of a call's turn in its ctx.
type turnKey struct{}

func (t *turns) beginTurn(c *call) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return &turn{c: c, waited: map[driver.Token]bool{}, held: map[driver.Token]bool{}}
}

func (t *turns) endTurn(x *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x.over = true
}

// noteRequest records a claim of a call of All. It does so before the request, because
// the signal of the grant may arrive before the answer.
func (t *turns) noteRequest(ctx context.Context, token driver.Token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x, _ := ctx.Value(turnKey{}).(*turn); x != nil {
		if t.byToken == nil {
			t.byToken = map[driver.Token]*turn{}
		}
		t.byToken[token] = x
	}
}

// noteAnswer records the answer to a claim of a call of All.
func (t *turns) noteAnswer(w *world, c driver.Claim, granted, waits bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.byToken[c.Token]
	if x == nil || !w.plan.quiet() {
		return
	}
	switch {
	case granted:
		x.held[c.Token] = true
	case waits && !x.waited[c.Token]:
		x.waited[c.Token] = true
		if others := len(x.held); others > 0 && !x.held[c.Token] {
			// A hold that is passed on inside the process is not given back.
			if p := x.c.process; x.givenBack < politeRounds && w.plan.processes[p.number-1].handoff < 0 {
				w.violated(c.Name, "%v waits for %q, and holds %d other names, after %d polite rounds", x.c, c.Name, others, x.givenBack)
			}
			if !x.holdsWhileWaiting {
				x.holdsWhileWaiting = true
				t.inOrder++
			}
		}
		if most := politeRounds + 1 + len(x.c.others); len(x.waited) > most {
			w.violated(c.Name, "%v starves: it has waited in %d queues; %d are enough", x.c, len(x.waited), most)
		}
	}
}

func (t *turns) noteSignal(token driver.Token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.byToken[token]; x != nil && !x.over {
		x.held[token] = true
	}
}

func (t *turns) noteRelease(token driver.Token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.byToken[token]
	if x == nil || x.over {
		return
	}
	if x.held[token] {
		delete(x.held, token)
		delete(t.byToken, token) // the signal of its grant may still come
		if len(x.held) == 0 {
			x.givenBack++
		}
	}
}
