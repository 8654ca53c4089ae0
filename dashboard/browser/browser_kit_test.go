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

// stepTimeout is the longest time that a step may take on a busy machine.
const stepTimeout = time.Minute

// chromium is the browser of all tests. The first test that needs it starts it. Each tab
// has a profile of its own.
var chromium = sync.OnceValues(startBrowser)

// stopBrowser ends the browser. If this process is killed before that, Linux kills the
// browser too (chromedp asks for that), and the browser's processes end with it.
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
		chromedp.Flag("no-sandbox", os.Getuid() == 0), // root has no sandbox
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("hide-scrollbars", true),
		// There is no network except loopback, and one name on it, the attacker's.
		chromedp.Flag("host-resolver-rules", "MAP "+attacker+" 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.Flag("no-proxy-server", true),
	)
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...) // end waits for the processes
	ctx, cancel := chromedp.NewContext(allocator)
	stopBrowser = func() {
		cancel()
		end()
		_ = os.RemoveAll(home)
	}
	return ctx, chromedp.Do(ctx)
}
