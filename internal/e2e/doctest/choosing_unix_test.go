//go:build unix

package doctest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/access"
	"github.com/pawl-go/pawl/internal/backends"
	"github.com/pawl-go/pawl/internal/doctable"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// serverOf starts a server for a backend, and returns its URL. A backend without a page,
// redlock, gets three servers.
func serverOf(t *testing.T, b backends.Backend) string {
	t.Helper()
	if b.Page == "" {
		var nodes []string
		for range 3 {
			nodes = append(nodes, redistest.Start(t).Addr)
		}
		return "redlock://" + strings.Join(nodes, ",")
	}
	page := "docs/backends/" + b.Page + ".md"
	return startServersFor(t, page).toTest(urlOf(t, page))
}

// The table of facts has the properties of the drivers, and the package comments list
// their abilities. The test does not check the rows of backends that have no URL scheme.
func TestTheTableOfFactsMatchesTheDrivers(t *testing.T) {
	file := filepath.Join(root, "docs", "choosing.md")
	const head = "| backend | clock that decides | shortest TTL | changes | deletions | one step | lease check | fences rise by |"
	documented := doctable.Rows(t, file, head)
	chosen := slices.DeleteFunc(slices.Clone(backends.All), func(b backends.Backend) bool { return len(b.Schemes) == 0 })
	rows := make([]string, len(chosen))
	t.Cleanup(func() { doctable.Want(t, file, head, rows) })
	for i, b := range chosen {
		rows[i] = documented[b.Name]
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			url := serverOf(t, b)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // only a hang takes so long
			defer cancel()
			locks, err := pawl.Open(ctx, url, servertest.Patient)
			noError(t, err)
			defer func() { _ = locks.Close() }()
			noError(t, locks.Mutex("x").Do(ctx, func(context.Context) error { return nil }))
			comment := b.Folder
			if b.Page == "" { // redlock's driver is quorumlock's
				comment = "quorumlock"
			}
			servertest.ListsAbilities(t, filepath.Join(root, comment), access.Driver(locks))
			grantsTwo := grantsTwoNames(ctx, t, access.Driver(locks))
			row := func() string { return factsOf(t, access.Driver(locks), b, grantsTwo) }
			// PushesChanges is true from the driver's first connection for changes on.
			for rows[i] = row(); rows[i] != documented[b.Name] && ctx.Err() == nil; rows[i] = row() {
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
}

// factsOf returns the row of a backend: clock, shortest TTL, changes, deletions, one
// step, lease check, fences.
func factsOf(t *testing.T, d driver.Driver, b backends.Backend, grantsTwo bool) string {
	t.Helper()
	word := map[bool]string{true: "yes", false: "no"}
	p := d.Properties()
	checks, err := filepath.Glob(filepath.Join(root, b.Folder, "lease_check.go"))
	noError(t, err)
	ttl := fmt.Sprintf("%d ms", p.MinTTL.Milliseconds())
	if p.MinTTL%time.Second == 0 {
		ttl = fmt.Sprintf("%d s", int(p.MinTTL.Seconds()))
	}
	cells := []string{b.Name, string(p.Clock), ttl, word[p.PushesChanges], word[p.ReportsDeletions], word[grantsTwo], word[len(checks) > 0]}
	cells = append(cells, map[driver.FenceSurvival]string{
		driver.FencesRiseInProcess: "the process", driver.FencesRiseByClock: "that clock", driver.FencesRiseByClientClock: "the clients' clocks",
		driver.FencesRiseByMajority: "a majority's data",
	}[p.FenceSurvives])
	return "| " + strings.Join(cells, " | ") + " |"
}

func grantsTwoNames(ctx context.Context, t *testing.T, d driver.Driver) bool {
	t.Helper()
	all, ok := d.(driver.AllAcquirer)
	if !ok {
		return false
	}
	var claims []driver.Claim
	for _, name := range []string{"a", "b"} {
		claims = append(claims, driver.Claim{
			Name: name, Token: driver.NewToken(), Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: 2 * time.Second,
		})
	}
	_, err := all.AcquireAll(ctx, claims)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		t.Fatal(err)
	}
	return err == nil
}
