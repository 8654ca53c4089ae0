package browser

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/redistest"
)

// The command runs on real backends, a server and a file. The page asks for its token,
// shows the holder in another process and its waiters, and breaks the lease.
func TestServeShowsWhatOtherProcessesHold(t *testing.T) {
	t.Parallel()
	token := filepath.Join(t.TempDir(), "token")
	noError(t, os.WriteFile(token, []byte("a-token-of-a-test-0123456789\n"), 0o600))
	for backend, url := range map[string]func(t *testing.T) string{
		"redis":  func(t *testing.T) string { return "redis://" + redistest.Start(t).Addr },
		"sqlite": func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "locks.db") },
	} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			at := url(t)
			noError(t, pawlCommand(t, "run", "--url", at, "report", "--", "true").Run()) // creates the file
			page := servePage(t, "--url", at, "--token-file", token, "--allow-break", "--delay", "0s")
			b := newTab(t, viewSettings{})
			b.allowFault("status of 401")
			b.visit(page, http.StatusUnauthorized)
			b.wantAccessible("sign in")
			b.fill("#token", "a-wrong-token-0123456789")
			b.follow(`button[type=submit].primary`)
			if output := b.text(); !strings.Contains(output, "This is not the token.") {
				t.Fatalf("a wrong token is answered with\n%s", output)
			}
			b.fill("#token", "a-token-of-a-test-0123456789")
			b.follow(`button[type=submit].primary`)
			b.until("the page is live", isLive)

			holding := pawlCommand(t, "run", "--url", at, "report", "--", "sleep", "600")
			var first lines
			holding.Stderr = &first
			noError(t, holding.Start())
			b.until("the lease is shown", rowContains("report", "exclusive"))
			waiting := pawlCommand(t, "run", "--url", at, "report", "--", "true")
			noError(t, waiting.Start())
			b.until("the waiter is shown", row("report")+`.querySelector(".queue li") != null`)
			b.follow(`#rows th a`)
			b.until("the lease is shown", isLive+` && document.querySelector("#holders a.button") != null`)
			b.follow(`#holders a.button`)
			b.fill("#typed", "report")
			b.follow("button.danger")
			b.until("the history has it", `document.getElementById("past").innerText.includes("broken")`)
			if err := holding.Wait(); err == nil || !strings.Contains(first.String(), "report") {
				t.Errorf("the broken holder ended with %v: %s", err, &first)
			}
			if err := waiting.Wait(); err != nil {
				t.Errorf("the next holder ended with %v", err)
			}
			b.until("the name is free", `document.getElementById("state").innerText.includes("It is free")`)
		})
	}
}
