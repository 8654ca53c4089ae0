package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/dashboard"
	"github.com/pawl-go/pawl/internal/bubble"
)

// routes has all routes, each with its method.
var routes = map[string]string{
	"": "GET", "name?name=job": "GET", "events?view=list": "GET", "break?name=job&fence=5": "GET", "health": "GET", "healthz": "GET",
	"login": "GET", "logout": "POST", "metrics": "GET", "style.css": "GET", "app.js": "GET", "theme.js": "GET", "nowhere": "GET",
}

// A page of another site can have a name that resolves to this address. To the browser,
// that page has the same origin as the dashboard. But the page cannot send another Host.
func TestEveryRouteRefusesAnotherHost(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		for to, method := range routes {
			for _, host := range []string{"evil.example", "evil.example:7420", "localhost.evil.example", "127.0.0.1.evil.example", "", "[::2]:7420", "127.0.0.2"} {
				want := http.StatusMisdirectedRequest
				if to == "healthz" || to == "metrics" && (host == "[::2]:7420" || host == "127.0.0.2") {
					want = http.StatusOK // a kubelet and Prometheus use the address of the pod
				}
				w := s.request(t, method, to, nil, func(r *http.Request) { r.Host = host })
				if w.Code != want || strings.Contains(w.Body.String(), "<") {
					t.Errorf("%s of %q got the status %d", to, host, w.Code)
				}
			}
		}
		for _, host := range []string{"localhost", "LOCALHOST:1", "localhost.", "127.0.0.1:7420", "[::1]:7420", "[::1]"} {
			if w := s.request(t, "GET", "style.css", nil, func(r *http.Request) { r.Host = host }); w.Code != http.StatusOK {
				t.Errorf("%q got the status %d", host, w.Code)
			}
		}
	})
}

// Prometheus uses the address of a pod as the host. A page of another site cannot do
// that, because its host is the name of that site.
func TestMetricsAnswerToAnyAddress(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, &dashboard.Options{Token: "0123456789abcdef"})
		for host, want := range map[string]int{
			"10.1.2.3:7420": http.StatusOK, "10.1.2.3": http.StatusOK, "[fd00::7]:7420": http.StatusOK, "localhost:7420": http.StatusOK,
			"evil.example": http.StatusMisdirectedRequest, "10.1.2.3.evil.example:7420": http.StatusMisdirectedRequest, "": http.StatusMisdirectedRequest,
		} {
			w := s.request(t, "GET", "metrics", nil, func(r *http.Request) {
				r.Host = host
				r.Header.Set("Authorization", "Bearer 0123456789abcdef")
			})
			if w.Code != want {
				t.Errorf("%q got the status %d, want %d", host, w.Code, want)
			}
		}
		if w := s.request(t, "GET", "metrics", nil, func(r *http.Request) { r.Host = "10.1.2.3" }); w.Code != http.StatusUnauthorized {
			t.Errorf("without the token the status is %d", w.Code)
		}
	})
}

func TestHostsReplaceTheDefault(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, &dashboard.Options{Hosts: []string{"Ops.Example"}})
		for host, want := range map[string]int{"ops.example:443": http.StatusOK, "localhost": http.StatusMisdirectedRequest} {
			if w := s.request(t, "GET", "style.css", nil, func(r *http.Request) { r.Host = host }); w.Code != want {
				t.Errorf("%q got the status %d", host, w.Code)
			}
		}
	})
}

func TestEveryAnswerHasTheHeaders(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		for to, method := range routes {
			if strings.HasPrefix(to, "events") {
				continue // it does not end
			}
			h := s.request(t, method, to, nil, nil).Header()
			csp := h.Get("Content-Security-Policy")
			if strings.Contains(csp, "unsafe") || !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") ||
				h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cache-Control") == "" {
				t.Errorf("%s has %v", to, h)
			}
		}
	})
}

func TestOnlyOurOwnPagesChangeAnything(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, &dashboard.Options{AllowBreak: true})
		g := s.take(t, claim("job", 1))
		for _, to := range []string{"break", "login", "logout"} {
			for _, from := range []func(r *http.Request){
				func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
				func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
				func(r *http.Request) { r.Header.Del("Sec-Fetch-Site"); r.Header.Set("Origin", "https://evil.example") },
				func(r *http.Request) { r.Header.Del("Sec-Fetch-Site"); r.Header.Set("Origin", "null") },
				func(r *http.Request) {
					r.Header.Set("Sec-Fetch-Site", "none")
					r.Header.Set("Origin", "https://evil.example")
				},
				func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none"); r.Header.Set("Origin", "null") },
			} {
				if w := s.request(t, "POST", to, breaking("job", g.Fence, "job"), from); w.Code != http.StatusForbidden {
					t.Errorf("%s from another site got the status %d", to, w.Code)
				}
			}
		}
		if e, _ := s.client.Inspect(t.Context(), "job"); len(e.Holders) != 1 {
			t.Errorf("it is broken: %+v", e)
		}
		typed := func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "none")
			r.Header.Set("Origin", "http://localhost:7420")
		}
		if w := s.request(t, "POST", "break", breaking("job", g.Fence, "job"), typed); w.Code != http.StatusSeeOther {
			t.Errorf("from the page itself the status is %d", w.Code)
		}
	})
}

func TestOtherMethodsAreRefused(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		for to, method := range routes {
			if to == "nowhere" {
				continue
			}
			for _, other := range []string{"PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"} {
				if w := s.request(t, other, to, nil, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-origin") }); w.Code != http.StatusMethodNotAllowed || !strings.Contains(w.Header().Get("Allow"), method) {
					t.Errorf("%s %s got the status %d, allowed are %q", other, to, w.Code, w.Header().Get("Allow"))
				}
			}
		}
		if w := s.request(t, "POST", "", url.Values{}, nil); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST got the status %d", w.Code)
		}
	})
}

func TestLargeRequestsAreRefused(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, &dashboard.Options{AllowBreak: true})
		if w := s.request(t, "GET", "?prefix="+strings.Repeat("x", 5000), nil, nil); w.Code != http.StatusRequestURITooLong {
			t.Errorf("a long URL got the status %d", w.Code)
		}
		g := s.take(t, claim("job", 1))
		long := breaking("job", g.Fence, "job")
		long.Set("more", strings.Repeat("x", 5000))
		if w := s.request(t, "POST", "break", long, nil); w.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("a large body got the status %d", w.Code)
		}
		if w := s.request(t, "POST", "break", long, func(r *http.Request) { r.ContentLength = -1 }); w.Code != http.StatusBadRequest {
			t.Errorf("a large body of unknown length got the status %d", w.Code)
		}
	})
}

// The handler works under any path, with the prefix stripped or not.
func TestItWorksUnderAnyPath(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		s.take(t, claim("job", 1))
		time.Sleep(6 * time.Second)
		for _, to := range []string{"", "locks/", "a/b/"} {
			wants(t, s.get(t, to), `href="style.css"`, `href="name?name=job"`)
			wants(t, s.get(t, to+"name?name=job"), "host:1")
		}
		lacks(t, s.get(t, ""), `href="/`, `action="/`, `src="/`)
	})
}

func TestInvalidOptionsAreRefused(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		for _, o := range []*dashboard.Options{{Token: "short"}, {MaxStreams: -1}, {BreakDelay: 31 * 24 * time.Hour}} {
			if h, err := dashboard.New(s.client, o); err == nil || !strings.Contains(err.Error(), "allowed") {
				t.Errorf("%+v: %v, %v", o, h, err)
			}
		}
		if _, err := dashboard.New((*pawl.Client)(nil), nil); err == nil {
			t.Error("New without a client returned no error")
		}
	})
}
