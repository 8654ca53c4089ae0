package redislock_test

import (
	"errors"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
)

// The error contains the damaged name, because the advice is to delete its keys.
func TestTheErrorContainsTheDamagedName(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d := openDriver(t, "redis://"+server.Addr)
	for what, spoil := range map[string]func(name string){
		"a key is missing": func(name string) {
			gets(t, d, reader(name))
			server.Do("DEL", "pawl:{"+name+"}d")
		},
		"foreign bytes":  func(name string) { server.Do("SET", "pawl:{"+name+"}s", "mine") },
		"a foreign type": func(name string) { server.Do("HSET", "pawl:{"+name+"}s", "a", "b") },
	} {
		bad := what + " b"
		spoil(bad)
		_, err := d.AcquireAll(ctx, []driver.Claim{mutex(what + " a"), mutex(bad), mutex(what + " c")})
		if e, ok := errors.AsType[*driver.Error](err); !ok || e.Name != bad {
			t.Errorf("%s: %v; want an error about %q", what, err, bad)
		}
	}
}
