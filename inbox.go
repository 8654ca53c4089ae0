package pawl

import (
	"sync"

	"github.com/pawl-go/pawl/driver"
)

// inbox hands the backend's signals to whom they concern. Nothing here blocks: it is called from inside the
// driver.
type inbox struct {
	mu      sync.Mutex
	waiters map[driver.Token]chan driver.Signal // each holds one signal
}

func (b *inbox) add(t driver.Token) chan driver.Signal {
	ch := make(chan driver.Signal, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiters[t] = ch
	return ch
}

func (b *inbox) remove(t driver.Token) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waiters, t)
}

// put leaves a signal for a waiter. "Granted" displaces what lies there; anything else only says "look", and
// whatever lies there says that already.
func (b *inbox) put(s driver.Signal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.Token.IsZero() {
		for _, ch := range b.waiters {
			leave(ch, s)
		}
		return
	}
	if ch := b.waiters[s.Token]; ch != nil {
		leave(ch, s)
	}
}

// leave is called with the mutex held: nobody else sends on ch, so there is room after taking out.
func leave(ch chan driver.Signal, s driver.Signal) {
	if s.Kind == driver.Granted {
		select {
		case <-ch:
		default:
		}
	}
	select {
	case ch <- s:
	default:
	}
}
