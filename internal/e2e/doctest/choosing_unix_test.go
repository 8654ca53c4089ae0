//go:build unix

package doctest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backends"
	"github.com/pawl-go/pawl/internal/below"
	"github.com/pawl-go/pawl/internal/redistest"
)

// serverOf is the URL of a backend on a server of its own: that of its page, or of three
// servers.
func serverOf(t *testing.T, b backends.Backend) string {
	t.Helper()
	if b.Start == "" {
		var nodes []string
		for range 3 {
			nodes = append(nodes, redistest.Start(t).Addr)
		}
		return "redlock://" + strings.Join(nodes, ",")
	}
	page := "docs/start/" + b.Start + ".md"
	if stages[page] == nil {
		return urlOf(t, page)
	}
	return stages[page](t).here(urlOf(t, page))
}

// The table of facts is what the drivers themselves say.
func TestTheFactsToChooseByAreTrue(t *testing.T) {
	rows := facts(t)
	chosen := slices.DeleteFunc(slices.Clone(backends.All), func(b backends.Backend) bool { return len(b.Schemes) == 0 })
	if len(rows) != len(chosen) {
		t.Errorf("%d backends have facts, there are %d", len(rows), len(chosen))
	}
	for _, b := range chosen {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			url := serverOf(t, b)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			locks, err := pawl.Open(ctx, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = locks.Close() }()
			if err := locks.Mutex("x").Do(ctx, func(context.Context) error { return nil }); err != nil {
				t.Fatal(err)
			}
			want, oneStep := rows[b.Name], takesAll(ctx, t, below.Driver(locks))
			facts := func() []string { return factsOf(t, below.Driver(locks), b.Folder, oneStep) }
			// What is pushed is known when the first connection for it stands.
			for got := facts(); !slices.Equal(got, want); got = facts() {
				select {
				case <-ctx.Done():
					t.Fatalf("docs/choosing.md has %q; the driver says %q", want, got)
				case <-time.After(20 * time.Millisecond):
				}
			}
		})
	}
}

// facts are the rows of the table, by their backend: clock, shortest TTL, changes,
// deletions, one step, lease check.
func facts(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "choosing.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, part, found := strings.Cut(string(text), "\n## Facts\n")
	if !found {
		t.Fatal("docs/choosing.md has no facts")
	}
	part, _, _ = strings.Cut(part, "\n## ")
	rows := map[string][]string{}
	for line := range strings.Lines(part) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if strings.HasPrefix(line, "| ") && cells[0] != "backend" {
			rows[cells[0]] = cells[1:]
		}
	}
	return rows
}

// factsOf are what a driver says of itself, as the table has it.
func factsOf(t *testing.T, d driver.Driver, folder string, oneStep bool) []string {
	t.Helper()
	word := map[bool]string{true: "yes", false: "no"}
	p := d.Properties()
	checks, err := filepath.Glob(filepath.Join(root, folder, "lease_check.go"))
	if err != nil {
		t.Fatal(err)
	}
	ttl := fmt.Sprintf("%d ms", p.MinTTL.Milliseconds())
	if p.MinTTL%time.Second == 0 {
		ttl = fmt.Sprintf("%d s", int(p.MinTTL.Seconds()))
	}
	return []string{string(p.Clock), ttl, word[p.PushesChanges], word[p.ReportsDeletions], word[oneStep], word[len(checks) > 0]}
}

// takesAll reports whether two names are granted in one step.
func takesAll(ctx context.Context, t *testing.T, d driver.Driver) bool {
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
