//go:build unix

package firstlock

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/memlock"
)

// triesVariable selects one of the tries for TestConformance.
const triesVariable = "PAWL_FIRSTLOCK_TRY"

func TestConformance(t *testing.T) {
	clock := memlock.NewClock(time.Now())
	table := tries[os.Getenv(triesVariable)]
	dir := t.TempDir()
	drivertest.Run(t, drivertest.Harness{
		Open: func(testing.TB) driver.Driver {
			return locktable.New(table(&folder{dir, clock.Now}), "")
		},
		Clock:     clock,
		NoNetwork: true,
	})
}

// tries are the first tries of docs/internals/writing-a-backend.md, each with its
// mistake.
var tries = map[string]func(f *folder) locktable.Table{
	"":         func(f *folder) locktable.Table { return f },
	"unlocked": func(f *folder) locktable.Table { return unlocked{f} },
	"hasty":    func(f *folder) locktable.Table { return hasty{f} },
	"folding":  func(f *folder) locktable.Table { return folding{f} },
}

// unlocked has no transaction. Its disk is so slow that the mistake shows each time.
type unlocked struct{ *folder }

func (f unlocked) Update(_ context.Context, steps []locktable.Step, do func(i int, e *locktable.Entry, now locktable.Instant)) error {
	slowDo := func(i int, e *locktable.Entry, now locktable.Instant) {
		do(i, e, now)
		time.Sleep(5 * time.Millisecond)
	}
	for i, step := range steps {
		if err := f.step(i, step.Name, slowDo); err != nil {
			return err
		}
	}
	return nil
}

// hasty deletes a name as soon as no client holds it or waits for it.
type hasty struct{ *folder }

func (f hasty) Update(ctx context.Context, steps []locktable.Step, do func(i int, e *locktable.Entry, now locktable.Instant)) error {
	return f.folder.Update(ctx, steps, func(i int, e *locktable.Entry, now locktable.Instant) {
		do(i, e, now)
		if len(e.Holders)+len(e.Queue) == 0 {
			*e = locktable.Entry{Changed: e.Changed, Signals: e.Signals}
		}
	})
}

// folding takes "A" and "a" for one name, as the collations of many databases do.
type folding struct{ *folder }

func (f folding) Update(ctx context.Context, steps []locktable.Step, do func(i int, e *locktable.Entry, now locktable.Instant)) error {
	folded := slices.Clone(steps)
	for i := range folded {
		folded[i].Name = strings.ToLower(folded[i].Name)
	}
	return f.folder.Update(ctx, folded, do)
}

// TestTheFirstTriesFailAsThePageShows runs the suite on each try. The subtests must fail
// that the page shows as failed.
func TestTheFirstTriesFailAsThePageShows(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: it waits for drivers with mistakes")
	}
	page, err := os.ReadFile("../../docs/internals/writing-a-backend.md")
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)```text (\\w+)\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(shown) != len(tries)-1 {
		t.Errorf("the page shows %d tries, want %d", len(shown), len(tries)-1)
	}
	fails := regexp.MustCompile(`(?m)^--- FAIL: (TestConformance/(\w+)/\w+)$`)
	for _, block := range shown {
		t.Run(block[1], func(t *testing.T) {
			t.Parallel()
			if tries[block[1]] == nil {
				t.Fatal("the page shows an unknown try")
			}
			var topics []string
			wantFailed := fails.FindAllStringSubmatch(block[2], -1)
			for _, m := range wantFailed {
				topics = append(topics, m[2])
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, exe, "-test.run=^TestConformance$/^("+strings.Join(topics, "|")+")$", "-test.count=1",
				"-rapid.nofailfile", "-rapid.shrinktime=1ms")
			cmd.Env = append(os.Environ(), triesVariable+"="+block[1])
			output, err := cmd.CombinedOutput()
			if err == nil || len(wantFailed) == 0 {
				t.Errorf("the suite passed, or the page shows no failed subtest")
			}
			for _, m := range wantFailed {
				if !strings.Contains(string(output), "--- FAIL: "+m[1]+" (") {
					t.Errorf("%s did not fail:\n%s", m[1], output)
				}
			}
		})
	}
}

// Open does not check the folder. If it does not exist, the error of a step names it.
func TestOpen(t *testing.T) {
	existing, missing := Open(t.TempDir()), Open("no such folder")
	claim := driver.Claim{Name: "x", Token: driver.Token{1}, Weight: driver.Exclusive, Limit: driver.Exclusive, TTL: time.Second}
	if _, err := existing.Acquire(t.Context(), claim); err != nil {
		t.Error(err)
	}
	_, err := missing.Acquire(t.Context(), claim)
	if !errors.Is(err, driver.ErrUnavailable) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a folder: %v", err)
	}
	if err := errors.Join(existing.Close(), missing.Close()); err != nil {
		t.Error(err)
	}
}
