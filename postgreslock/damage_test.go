package postgreslock_test

import (
	"testing"

	"github.com/pawl-go/pawl/internal/servertest"
)

// A row that was edited does not count as a free name, and affects no other name.
func TestADamagedRowIsNoFreeName(t *testing.T) {
	t.Parallel()
	for _, value := range []string{`'\x'`, `'\xffff'`} {
		_, url, _ := fresh(t)
		servertest.Damaged(t, openDriver(t, url), openDriver(t, url), "", func(name string) {
			exec(t, conn(t, url), "UPDATE pawl.locks SET version = version + 1, entry = "+value+" WHERE name = '"+name+"'")
		})
	}
}
