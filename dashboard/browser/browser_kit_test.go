package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/chromedp/chromedp"
)

// patience is how long something may take on a machine that has other things to do.
const patience = time.Minute

// chromium is the one browser of all tests. It is started when it is first needed; each
// page has a profile of its own in it.
var chromium = sync.OnceValues(startBrowser)

// stopBrowser ends it. Should this process be killed before, Linux kills the browser with
// it (chromedp asks for that), and the browser's processes end with the browser.
var stopBrowser = func() {}

func startBrowser() (context.Context, error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, fmt.Errorf("%w: on Debian, apt-get install --no-install-recommends chromium", err)
	}
	home, err := os.MkdirTemp("", "pawl-browser-")
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.Env("HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home, "TZ=UTC", "LANG=C.UTF-8"),
		chromedp.Flag("no-sandbox", os.Getuid() == 0), // root has none
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("hide-scrollbars", true),
		// There is no network besides loopback, and one name in it, of an attacker.
		chromedp.Flag("host-resolver-rules", "MAP "+attacker+" 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.Flag("no-proxy-server", true),
	)
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...) // waits until the processes are gone
	ctx, cancel := chromedp.NewContext(allocator)
	stopBrowser = func() {
		cancel()
		end()
		_ = os.RemoveAll(home)
	}
	return ctx, chromedp.Do(ctx)
}
