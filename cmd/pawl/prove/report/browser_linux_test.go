package report

import (
	"context"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// dom returns a page after Chromium has run its script.
func dom(t *testing.T, page, fragment string) string {
	t.Helper()
	skipIfShort(t, "it needs a browser")
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v: on Debian, apt-get install --no-install-recommends chromium", err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "report.html")
	noError(t, os.WriteFile(file, []byte(page), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	args := []string{"--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND", "--user-data-dir=" + filepath.Join(dir, "profile"),
		"--window-size=1280,900", "--dump-dom", "file://" + file + fragment}
	if os.Getuid() == 0 { // root has no sandbox
		args = append([]string{"--no-sandbox"}, args...)
	}
	c := exec.CommandContext(ctx, browser, args...)
	c.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_CACHE_HOME="+dir)
	c.WaitDelay = 10 * time.Second
	out, err := c.Output()
	noError(t, err)
	return string(out)
}

// The link of a violation makes the page show its two claims.
func TestTheScriptShowsAViolation(t *testing.T) {
	names := append(slices.Clone(kindsOfNames), history.Name{Name: "</script>\u202e", Kind: history.Mutex, Limit: 1})
	m := makeHistory(plan{leases: 2000, faults: 10, seconds: 60, names: names})
	m.plantOverlap("b", .6)
	page := dom(t, write(t, m), "#v1")
	if !strings.Contains(page, `data-ready="yes"`) || strings.Contains(page, "The timeline failed:</p>") {
		t.Fatalf("the script failed: %s", regexp.MustCompile(`The timeline[^<]*`).FindAllString(page, -1))
	}
	_, chosen, _ := strings.Cut(page, `id="chosen"`)
	chosen = words("<" + chosen)
	for _, id := range m.v.Violations[0].Claims {
		if want := "Claim " + strconv.FormatInt(id, 10) + " of “b”"; !strings.Contains(chosen, want) {
			t.Errorf("the page does not show %q: %.500s", want, chosen)
		}
	}
	if !strings.Contains(html.UnescapeString(page), `<option value="7">`+`</script>\u202e`+`</option>`) {
		t.Error("the filter does not show the hostile name")
	}
}
