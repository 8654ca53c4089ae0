package postgreslock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/pgtest"
	"github.com/pawl-go/pawl/internal/servertest"
)

func TestAServerThatStandsStill(t *testing.T) {
	skipIfShort(t, "it waits for the end of a lease")
	t.Parallel()
	server := pgtest.Start(t)
	servertest.StandsStill(t, open(t, server.URL("postgres")), openDriver(t, server.URL("postgres")), server.Pause, server.Resume)
}

// The disk of the tables is full: new names are refused, and held ones can be renewed and
// released in the free space of their page.
func TestAFullDiskRefusesOnlyNewNames(t *testing.T) {
	skipIfShort(t, "a full disk")
	t.Parallel()
	server := pgtest.Start(t)
	disk := server.SmallDisk("16m")
	server.Do("postgres", "CREATE TABLESPACE small LOCATION '"+disk.Dir+"'")
	server.Do("postgres", "CREATE DATABASE small TABLESPACE small")
	servertest.FullDisk(t, openDriver(t, server.URL("small")), disk.Fill, disk.Empty)
}

// If the disk of the log is full, PostgreSQL ends. After a restart with free space, held
// names are still held, and no name is granted twice.
func TestAFullDiskOfTheLogLosesNoLease(t *testing.T) {
	skipIfShort(t, "a full disk")
	t.Parallel()
	server := pgtest.Start(t)
	disk := server.SmallDisk("50m") // for three files of 16 MB
	server.Stop()
	server.Move("pg_wal", disk)
	server.Run()
	d := openDriver(t, server.URL("postgres"))
	held := mutex("held")
	held.TTL = 5 * time.Minute
	g := gets(t, d, held)
	disk.Fill()
	var err error
	for i := 0; err == nil && i < 8; i++ {
		_, _ = conn(t, server.URL("postgres")).Exec(ctx, "SELECT pg_switch_wal()") // the next file finds no room
		_, err = d.Acquire(ctx, mutex(fmt.Sprintf("job-%d", i)))
	}
	if e := wantDriverError(t, err, false, ""); e.Hint == "" {
		t.Errorf("without room for the log: %v; want a hint", err)
	}
	t.Log(err)
	disk.Empty()
	server.Kill() // it may be restarting itself
	server.Run()
	eventually(t, "the driver renews the held lease", func() bool {
		answers, err := d.Renew(ctx, []driver.LeaseRef{lease(held)})
		return err == nil && answers[0] == nil
	})
	isRefused(t, d, mutex("held"))
	releases(t, d, held)
	wantHigherFence(t, g.Fence, gets(t, d, mutex("held")).Fence)
}
