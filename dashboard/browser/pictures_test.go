//go:build pictures

package browser

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/pawl-go/pawl/dashboard"
	"github.com/pawl-go/pawl/driver"
)

var pictureFolder = flag.String("into", "", "the folder for the pictures")

// TestPictures takes the pictures for the documents from the running page. `make
// screenshots` runs it.
func TestPictures(t *testing.T) {
	if *pictureFolder == "" {
		t.Fatal("-into FOLDER is missing")
	}
	s := newScene(t)
	w := newWorld(t, s.backend, &dashboard.Options{AllowBreak: true})
	b := open(t, w.url, viewSettings{})
	b.until("the lease is seen before it is late", isLive+` && `+rowContains("warm-cache", "web-3:677"))
	s.advance(0)
	b.until("it is late", rowContains("warm-cache", "overdue"))
	report := s.holders("nightly-report")[0].Fence
	b.pictures("names", w.url, rowContains("warm-cache", "overdue"))
	b.pictures("health", w.url+"health", `document.querySelector("h1") != null`)
	b.pictures("blocked", w.url+"name?name=stock:us", `document.getElementById("blocks").innerText.includes("worker-2:1502")`)
	b.pictures("break", fmt.Sprintf("%sbreak?name=nightly-report&fence=%d", w.url, report), `document.getElementById("typed") != null`)
	makePastLeases(b, s, w)
	b.pictures("name", w.url+"name?name=invoice-run", `document.getElementById("past").innerText.includes("held now")`)
}

// makePastLeases makes leases that begin and end in real time, for a name's timeline.
func makePastLeases(b *tab, s *scene, w *world) {
	b.visit(w.url+"name?name=invoice-run", http.StatusOK)
	b.until("the page is live", isLive)
	runs := make([]driver.Claim, 8)
	for i := range runs {
		runs[i] = mutex("invoice-run", fmt.Sprintf("invoices-%d", 1+i%3), 3021+i%3*77)
		runs[i].QueueTTL = runs[i].TTL
		s.sendClaim(runs[i])
		if i < 4 {
			time.Sleep(time.Duration(300+200*(i%2)) * time.Millisecond) // the picture shows how long each waited
		}
		if i >= 2 {
			time.Sleep(time.Duration(700+500*(i%3)) * time.Millisecond) // and held
			s.release(runs[i-2])
		}
	}
}

// pictures takes pictures of a page in both themes. It also takes pictures on a phone of
// the pages that operators use on the way.
func (b *tab) pictures(name, url, ready string) {
	b.t.Helper()
	for kind, l := range map[string]viewSettings{
		"light": {width: 1120, height: 400, scale: 1.5}, "dark": {width: 1120, height: 400, scale: 1.5, dark: true},
		"phone": {phone: true, scale: 2},
	} {
		if l.phone && name != "names" && name != "name" {
			continue
		}
		b.emulate(l)
		b.visit(url, http.StatusOK)
		b.until("the page is complete", ready)
		b.until("it is live, or has no stream", `(l => !l || l.dataset.state == "up")(document.getElementById("link"))`)
		b.picture("dashboard-" + name + "-" + kind)
	}
}

// picture saves a picture of the whole page.
func (b *tab) picture(name string) {
	b.t.Helper()
	b.until("no animation runs", `document.getAnimations().length == 0`)
	png := must(chromedp.Run(b.ctx, chromedp.FullScreenshot(100)))(b.t)
	noError(b.t, os.WriteFile(filepath.Join(*pictureFolder, name+".png"), png, 0o644))
}
