package pawl

import "github.com/pawl-go/pawl/driver"

// Claims have nothing to do with each other, so what is kept of them stands in several shards with a mutex
// each: goroutines on names of their own would otherwise spend more time on our mutexes than on their locks.
const shards = 16

// allInboxes know whom signals concern, see inbox.go.
type allInboxes struct {
	shard [shards]struct {
		inbox
		_ [64]byte
	}
}

func newInboxes() *allInboxes {
	a := &allInboxes{}
	for i := range a.shard {
		a.shard[i].claims = map[driver.Token]*claim{}
	}
	return a
}

// of is the shard of a token, which is random.
func (a *allInboxes) of(t driver.Token) *inbox { return &a.shard[t[0]%shards].inbox }

// lookAll tells every claim that waits to look.
func (a *allInboxes) lookAll(s driver.Signal) {
	for i := range a.shard {
		a.shard[i].putAll(s)
	}
}
