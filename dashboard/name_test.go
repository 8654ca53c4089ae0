package dashboard_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/memlock"
)

func TestThePageOfANameShowsItsHoldersItsQueueAndItsHistory(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		s.get(t, "")
		first, second, third := claim("job", 1), claim("job", 2), claim("job", 3)
		first.Value = []byte("at 10.0.0.7")
		s.take(t, first)
		time.Sleep(5 * time.Second)
		s.queue(t, second)
		s.queue(t, third)
		time.Sleep(10 * time.Second)
		s.release(t, first)
		time.Sleep(6 * time.Second)
		page := s.get(t, "name?name=job")
		wantTexts(t, page, "Held by 1 lease", "<bdi>at 10.0.0.7</bdi>", "<bdi>host:2</bdi>", "<bdi>host:3</bdi>", `data-head="TTL">30s</td>`, "released", "held now",
			`<th scope="row" role="rowheader">1</th>`, `<svg role="img"`, "waited", ">10s</td>", "the last 50 leases of each of the last 1000 names")
	})
}

func TestThePageOfAFreeNameIsNoError(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		c := claim("job", 1)
		g := s.take(t, c)
		s.release(t, c)
		wantTexts(t, s.get(t, "name?name=job"), "It is free.", fmt.Sprint(g.Fence), "Nobody holds it.", "Nobody waits.", "Nothing was seen yet.")
		s.status(t, http.StatusBadRequest, http.MethodGet, "name?name=", nil, nil)
	})
}

func TestADeadlockIsShown(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		s.take(t, claim("a", 1))
		s.take(t, claim("b", 2))
		s.queue(t, claim("a", 2))
		s.queue(t, claim("b", 1))
		time.Sleep(6 * time.Second)
		wantTexts(t, s.get(t, ""), "1 deadlock.")
		wantTexts(t, s.get(t, "name?name=a"), "A deadlock.", "<bdi>host:2</bdi> holds ", " and waits for ")
	})
}

func TestAnExpiredLeaseIsShownAsLost(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		s.take(t, claim("job", 1))
		time.Sleep(20 * time.Second)
		wantTexts(t, s.get(t, "name?name=job"), "not renewed in time")
		time.Sleep(20 * time.Second)
		wantTexts(t, s.get(t, "name?name=job"), "lost: not renewed in time", `class="held lost"`)
	})
}

// A namespace leaves room for one byte of a name at least.
func TestTheHealthPageWorksInALongNamespace(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := memlock.NewMemory(nil)
		s := newSiteInNamespace(t, strings.Repeat("x", 252), memory.Driver(), memory, nil)
		wantNoTexts(t, s.get(t, "health"), "name has")
	})
}

func TestTheHealthPageDescribesTheBackend(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		s.take(t, claim("job", 1))
		page := s.get(t, "health")
		wantTexts(t, page, "cannot examine itself", "memory", "Every lease was renewed in time.", "to read one name", "1 name read in", "at once")
		time.Sleep(25 * time.Second)
		wantTexts(t, s.get(t, "health"), "1 name with a lease that was not renewed in time")
		if w := s.request(t, http.MethodGet, "healthz", nil, nil); w.Code != http.StatusOK || w.Body.String() != "ok\n" {
			t.Errorf("healthz answers %d %q, want 200 ok", w.Code, w.Body)
		}
		s.Close()
		s.status(t, http.StatusServiceUnavailable, http.MethodGet, "healthz", nil, nil)
	})
}

// No page contains a lease token, in any spelling.
func TestNoPageHasAToken(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		c := claim("job", 1)
		c.Token = driver.Token([]byte("secretsecretsecr"))
		s.take(t, c)
		time.Sleep(6 * time.Second)
		live := s.open(t.Context(), "events?view=name&name=job")
		time.Sleep(time.Second)
		for _, page := range []string{s.get(t, ""), s.get(t, "name?name=job"), s.get(t, "health"), live.take()} {
			wantNoTexts(t, page, "secret", "736563726574", "c2VjcmV0")
		}
	})
}
