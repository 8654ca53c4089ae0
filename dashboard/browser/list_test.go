package browser

import (
	"slices"
	"strconv"
	"testing"
)

// The page updates itself: a new lease appears, its bar moves, a waiter appears, and a
// hand-over moves the row to the next holder.
func TestThePageFollowsALease(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newBackend(t, nil), nil)
	b := open(t, w.url, viewSettings{})
	b.until("the page is live", isLive)
	b.until("the list is empty", `document.getElementById("rows").innerText.includes("No name is held")`)

	first, second := mutex("report", "web-1", 4127), mutex("report", "web-2", 3380)
	w.take(first)
	b.until("the lease is shown", rowContains("report", "web-1:4127", "exclusive"))
	b.until("the bar is at most full", row("report")+`.querySelector("progress").value > 0`)
	was := js[float64](b, row("report")+`.querySelector("progress").value`)
	b.until("the bar moves", row("report")+`.querySelector("progress").value < `+strconv.FormatFloat(was-300, 'f', -1, 64))

	w.queue(second)
	b.until("the waiter is shown", rowContains("report", "web-1:4127")+` && `+row("report")+`.querySelector(".queue li").innerText.includes("web-2:3380")`)
	b.until("it is counted", `document.getElementById("counts").innerText.includes("1 waiter")`)

	fence := w.holders("report")[0].Fence
	w.release(first)
	b.until("the next one has it", rowContains("report", "web-2:3380")+` && !`+rowContains("report", "web-1:4127"))
	next := w.holders("report")[0].Fence
	if next <= fence {
		t.Errorf("the fence of the next holder is %d after %d, want it to rise", next, fence)
	}
	b.until("its fence is shown", row("report")+`.querySelector(".fence").innerText == `+quote(strconv.FormatUint(next, 10)))

	w.release(second)
	b.until("the row goes", `!`+row("report"))
}

// A row whose lease was not renewed in time has a mark, and comes first.
func TestAnOverdueLeaseComesFirst(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	w := newWorld(t, s.backend, nil)
	b := open(t, w.url, viewSettings{})
	b.until("the lease is shown", rowContains("warm-cache", "web-3:677"))
	if js[bool](b, row("warm-cache")+`.classList.contains("late")`) {
		t.Error("it is marked before it is late")
	}
	s.advance(0)
	b.until("it is marked", row("warm-cache")+`.classList.contains("late")`)
	b.until("it is the first", `document.querySelector("#rows > tr").dataset.key == "warm-cache"`)
	b.until("its bar is red", `getComputedStyle(`+row("warm-cache")+`.querySelector("progress.late + .t")).color == getComputedStyle(document.querySelector(".badge.bad")).color`)
	b.until("the page shows that", rowContains("warm-cache", "overdue"))
}

// Links and a form sort the names and search for them, so this works without scripts,
// too.
func TestNamesAreSearchedAndSorted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newBackend(t, nil), nil)
	for _, name := range []string{"invoice:2", "report:1", "invoice:1"} {
		w.take(mutex(name, "web-1", 1))
	}
	for _, scripts := range []bool{true, false} {
		b := open(t, w.url, viewSettings{noScripts: !scripts})
		names := func(want ...string) {
			t.Helper()
			if got := js[[]string](b, `[...document.querySelectorAll("#rows > tr")].map(r => decodeURIComponent(r.dataset.key))`); !slices.Equal(got, want) {
				t.Errorf("with scripts: %v: the names are %q, want %q", scripts, got, want)
			}
		}
		if scripts { // the first view may arrive later
			b.until("the names are there", row("report:1")+" != null")
		}
		b.follow(`thead a[href*="sort=name"]`)
		names("invoice:1", "invoice:2", "report:1")
		b.follow(`thead a[href*="sort=name"]`)
		names("report:1", "invoice:2", "invoice:1")
		b.fill("#prefix", "inv")
		b.follow(`form[role=search] button`)
		names("invoice:1", "invoice:2")
	}
}
