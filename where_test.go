package pawl_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/memlock"
)

// located is a backend that answers nothing, and says where it is.
type located struct{ silent }

func (l *located) Properties() driver.Properties {
	p := l.Driver.Properties()
	p.Where = "memory host:6379"
	return p
}

func TestARequestThatIsNotAnsweredSaysWhereItWasSent(t *testing.T) {
	for where, d := range map[string]driver.Driver{
		"pawl: memory host:6379: acquire \"x\": no answer in time": &located{silent{Driver: memlock.New(nil)}},
		"pawl: memory: acquire \"x\": no answer in time":           &silent{Driver: memlock.New(nil)},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, err := pawl.New(d, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Mutex("x").TryLock(t.Context()); err == nil || !strings.HasPrefix(err.Error(), where) {
				t.Errorf("TryLock: %v; want %s", err, where)
			}
			_ = c.Close(t.Context())
		})
	}
}
