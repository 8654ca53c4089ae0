package postgreslock

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// namesPerRead is the number of names that one statement reads.
const namesPerRead = 1000

// pollClaims reads the entries of this client's claims, and delivers the signals that
// were missed while it did not listen. It reports whether it read all entries.
func (l *listener) pollClaims() bool {
	names, byName := engine.ByName(l.claims.All(time.Now()))
	for chunk := range slices.Chunk(names, namesPerRead) {
		asked := time.Now()
		ctx, cancel := context.WithTimeout(l.store.closing, requestTimeout)
		all, err := l.store.Load(ctx, chunk)
		cancel()
		if err != nil {
			return false
		}
		for i, name := range chunk {
			e := &locktable.Entry{}
			if len(all[i].Value) > 0 {
				if e, err = locktable.Decode(all[i].Value); err != nil {
					continue // a step on the name reports the damage
				}
			}
			for _, s := range l.claims.Compare(byName[name], e, asked) {
				l.store.deliver(s)
			}
		}
	}
	return true
}
