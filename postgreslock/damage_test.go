package postgreslock_test

import (
	"testing"

	"github.com/pawl-go/pawl/internal/servertest"
)

// A row that was edited does not count as a free name, and affects no other name.
func TestADamagedRowIsNoFreeName(t *testing.T) {
	t.Parallel()
	for _, value := range []string{`'\x'`, `'\xffff'`} {
		_, url, _ := freshDatabase(t)
		servertest.Damaged(t, openDriver(t, url), openDriver(t, url), "", func(name string) {
			exec(t, conn(t, url), "UPDATE pawl.locks SET version = version + 1, entry = "+value+" WHERE name = '"+name+"'")
		})
	}
}

// After an operator has emptied the table, or restored an old one, held names are granted
// again, with greater fences. The next renewal of the old holder fails.
func TestDeletedOrRestoredNamesGetGreaterFences(t *testing.T) {
	t.Parallel()
	for what, statements := range map[string][]string{
		"deleted":  {"DELETE FROM pawl.locks"},
		"restored": {"DELETE FROM pawl.locks", "INSERT INTO pawl.locks SELECT * FROM backup"},
	} {
		t.Run(what, func(t *testing.T) {
			_, url, _ := freshDatabase(t)
			one, two := openDriver(t, url), openDriver(t, url)
			cycle(t, one, "job")
			exec(t, conn(t, url), "CREATE TABLE backup AS SELECT * FROM pawl.locks")
			servertest.Forgets(t, one, two, func() { exec(t, conn(t, url), statements...) })
		})
	}
}
