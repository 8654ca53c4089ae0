package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/dashboard"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/memlock"
)

func breakFormValues(name string, fence uint64, typed string) url.Values {
	return url.Values{"name": {name}, "fence": {fmt.Sprint(fence)}, "typed": {typed}}
}

func TestWithoutAllowBreakNoLeaseIsBroken(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		g := s.take(t, claim("job", 1))
		page := s.get(t, "name?name=job")
		wantNoTexts(t, page, "Break")
		wantTexts(t, page, "pawl break NAME", "--allow-break")
		s.status(t, http.StatusForbidden, http.MethodPost, "break", breakFormValues("job", g.Fence, "job"), nil)
		s.status(t, http.StatusForbidden, http.MethodGet, fmt.Sprintf("break?name=job&fence=%d", g.Fence), nil, nil)
		if e, _ := s.client.Inspect(t.Context(), "job"); len(e.Holders) != 1 {
			t.Errorf("it is broken: %+v", e)
		}
	})
}

func TestABreakNeedsTheFenceAndTheName(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, &dashboard.Options{AllowBreak: true})
		g := s.take(t, claim("job <1>", 1))
		page := s.get(t, fmt.Sprintf("break?name=job+%%3C1%%3E&fence=%d", g.Fence))
		wantTexts(t, page, "<bdi>host:1</bdi>", fmt.Sprint(g.Fence), "closed for 30s", "type the name")
		s.status(t, http.StatusUnprocessableEntity, http.MethodPost, "break", breakFormValues("job <1>", g.Fence, "job"), nil)
		s.status(t, http.StatusOK, http.MethodGet, "break?"+breakFormValues("job <1>", g.Fence, "job <1>").Encode(), nil, nil)
		if e, _ := s.client.Inspect(t.Context(), "job <1>"); len(e.Holders) != 1 {
			t.Fatalf("it is broken: %+v", e)
		}
		w := s.request(t, http.MethodPost, "break", breakFormValues("job <1>", g.Fence, "job <1>"), nil)
		to := w.Header().Get("Location")
		if w.Code != http.StatusSeeOther || !strings.HasPrefix(to, "/name?name=job+%3C1%3E&broke=") && !strings.HasPrefix(to, "name?name=job+%3C1%3E&broke=") {
			t.Errorf("the status is %d, to %q", w.Code, to)
		}
		time.Sleep(time.Second)
		page = s.get(t, strings.TrimPrefix(to, "/"))
		wantTexts(t, page, fmt.Sprintf("The lease with fence %d is broken.", g.Fence), "<strong>Closed: </strong>nothing is granted for another ", ">29s</span>, because its last lease was broken", "lost: broken by 127.0.0.1:50000")
		_, proof, _ := strings.Cut(to, "&proof=")
		for _, forged := range []string{
			"&broke=" + fmt.Sprint(g.Fence), fmt.Sprintf("&broke=%d&proof=", g.Fence), "&broke=17&proof=" + proof,
		} {
			wantNoTexts(t, s.get(t, "name?name=job+%3C1%3E"+forged), "is broken")
		}
		other := strings.Replace(strings.TrimPrefix(to, "/"), "job+%3C1%3E", "job", 1)
		wantNoTexts(t, s.get(t, other), "is broken")
		wantTexts(t, s.log.String(), "pawl: lease broken", `name="job <1>"`, fmt.Sprintf("fence=%d", g.Fence), "by=127.0.0.1:50000", "delay=30s", "time=")

		s.status(t, http.StatusConflict, http.MethodPost, "break", breakFormValues("job <1>", g.Fence, "job <1>"), nil)
		wantTexts(t, s.log.String(), "pawl: lease not broken")
	})
}

// The page shows invisible characters and characters that change the direction as
// escapes. So a person can type such a name.
func TestANameThatIsShownEscapedIsBroken(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, &dashboard.Options{AllowBreak: true})
		name, shown := "zero\u200b\u202ejob", `zero\u200b\u202ejob`
		c := claim(name, 1)
		c.Owner.Labels = map[string]string{"ticket": "4711"}
		g := s.take(t, c)
		page := s.get(t, "break?"+url.Values{"name": {name}, "fence": {fmt.Sprint(g.Fence)}}.Encode())
		wantTexts(t, page, "<strong><bdi>"+shown+"</bdi></strong>", "<bdi>ticket</bdi>=<bdi>4711</bdi>")
		s.status(t, http.StatusUnprocessableEntity, http.MethodPost, "break", breakFormValues(name, g.Fence, "zerojob"), nil)
		s.status(t, http.StatusSeeOther, http.MethodPost, "break", breakFormValues(name, g.Fence, shown), nil)
	})
}

// A page collapses spaces, so their number does not count. All other characters do.
func TestANameWithSpacesIsBroken(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, &dashboard.Options{AllowBreak: true, BreakDelay: -1})
		for name, typed := range map[string]string{"  job": "job", "job  7 ": "job 7", " \u200b  x": `\u200b x`, "   ": " "} {
			g := s.take(t, claim(name, 1))
			s.status(t, http.StatusUnprocessableEntity, http.MethodPost, "break", breakFormValues(name, g.Fence, typed+"."), nil)
			s.status(t, http.StatusSeeOther, http.MethodPost, "break", breakFormValues(name, g.Fence, typed), nil)
		}
	})
}

// The log has the stored name, which distinguishes two tenants.
func TestTheLogHasTheNamespaceOfABrokenLease(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := memlock.NewMemory(nil)
		s := newSiteInNamespace(t, "acme", memory.Driver(), memory, &dashboard.Options{AllowBreak: true})
		g := s.take(t, claim("@acme:job", 1))
		s.status(t, http.StatusSeeOther, http.MethodPost, "break", breakFormValues("job", g.Fence, "job"), nil)
		wantTexts(t, s.log.String(), "pawl: lease broken", "name=@acme:job")
	})
}

// Without a delay, the next claim does not wait, and the page mentions no delay.
func TestALeaseIsBrokenWithoutADelay(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, &dashboard.Options{AllowBreak: true, BreakDelay: -1})
		g := s.take(t, claim("job", 1))
		wantTexts(t, s.get(t, fmt.Sprintf("break?name=job&fence=%d", g.Fence)), "The next one may get the name at once")
		to := s.request(t, http.MethodPost, "break", breakFormValues("job", g.Fence, "job"), nil).Header().Get("Location")
		page := s.get(t, strings.TrimPrefix(to, "/"))
		wantTexts(t, page, fmt.Sprintf("The lease with fence %d is broken.", g.Fence), "Pawl notifies its holder, and the next one gets the name.")
		wantNoTexts(t, page, "the time below", "Closed: ")
	})
}

func TestABreakLeavesALaterHolder(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, &dashboard.Options{AllowBreak: true})
		first, second := claim("job", 1), claim("job", 2)
		g := s.take(t, first)
		s.release(t, first)
		s.take(t, second)
		page := s.status(t, http.StatusConflict, http.MethodPost, "break", breakFormValues("job", g.Fence, "job"), nil)
		wantTexts(t, page, "Nothing was broken: no lease has this fence any more")
		if e, _ := s.client.Inspect(t.Context(), "job"); len(e.Holders) != 1 || e.Holders[0].Owner.PID != 2 {
			t.Errorf("it is held by %+v", e.Holders)
		}
	})
}

// If the backend cannot break leases, or the client refuses the request, the page shows
// that nothing was broken, as pawl top does.
func TestThePageShowsThatNoLeaseWasBroken(t *testing.T) {
	tooLong := strings.Repeat("n", driver.MaxName)
	for _, c := range []struct {
		name, namespace string
		breaks          bool // the backend can break leases
		code            int
		text            string
	}{
		{"job", "", false, http.StatusNotImplemented, "Nothing was broken: the backend memory cannot break a lease"},
		{tooLong, "acme", true, http.StatusBadRequest, "Nothing was broken: name "},
	} {
		bubble.Test(t, func(t *testing.T) {
			memory := memlock.NewMemory(nil)
			d := memory.Driver()
			if !c.breaks {
				d = struct{ driver.Driver }{d}
			}
			s := newSiteInNamespace(t, c.namespace, d, memory, &dashboard.Options{AllowBreak: true})
			page := s.status(t, c.code, http.MethodPost, "break", breakFormValues(c.name, 1, c.name), nil)
			wantTexts(t, page, c.text)
			wantNoTexts(t, page, "It is not known")
		})
	}
}

// The page of a name, and the form that breaks a lease, show a lease that came after the
// last scan of all names.
func TestALeaseThatNoScanHasFoundYetIsShown(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, &dashboard.Options{AllowBreak: true})
		s.get(t, "") // causes a scan, so that the next pages do not wait for one
		g := s.take(t, claim("job", 1))
		wantTexts(t, s.get(t, "name?name=job"), fmt.Sprintf("fence=%d", g.Fence))
		wantTexts(t, s.get(t, fmt.Sprintf("break?name=job&fence=%d", g.Fence)), "Held by ", "host:1")
	})
}

func TestABreakOfAnInvalidLeaseIsRefused(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, &dashboard.Options{AllowBreak: true})
		for _, q := range []string{"", "name=job", "name=job&fence=x", "name=job&fence=-1", "name=job&fence=0", "fence=5", "name=a%00&fence=5"} {
			s.status(t, http.StatusBadRequest, http.MethodGet, "break?"+q, nil, nil)
		}
	})
}
