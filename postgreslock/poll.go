package postgreslock

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// atOnce is how many names are looked at in one statement.
const atOnce = 1000

// lookAtClaims tells what has happened to the claims of this client while nobody
// listened. It reports whether it could.
func (l *listener) lookAtClaims() bool {
	names, byName := engine.ByName(l.claims.All(time.Now()))
	for some := range slices.Chunk(names, atOnce) {
		asked := time.Now()
		ctx, cancel := context.WithTimeout(l.life, answers)
		all, err := l.store.Load(ctx, some)
		cancel()
		if err != nil {
			return false
		}
		for i, name := range some {
			e := &locktable.Entry{}
			if len(all[i].Value) > 0 {
				if e, err = locktable.Decode(all[i].Value); err != nil {
					continue // whoever asks for it is told
				}
			}
			for _, s := range l.claims.Compare(byName[name], e, asked) {
				l.deliver(s)
			}
		}
	}
	return true
}
