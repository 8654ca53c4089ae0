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
					t.Errorf("%s of %q got the status %d, want %d without markup", to, host, w.Code, want)
				}
			}
		}
		for _, host := range []string{"localhost", "LOCALHOST:1", "localhost.", "127.0.0.1:7420", "[::1]:7420", "[::1]"} {
			s.status(t, http.StatusOK, "GET", "style.css", nil, func(r *http.Request) { r.Host = host })
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
			s.status(t, want, "GET", "metrics", nil, func(r *http.Request) {
				r.Host = host
				r.Header.Set("Authorization", "Bearer 0123456789abcdef")
			})
		}
		s.status(t, http.StatusUnauthorized, "GET", "metrics", nil, func(r *http.Request) { r.Host = "10.1.2.3" })
	})
}

func TestHostsReplaceTheDefault(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, &dashboard.Options{Hosts: []string{"Ops.Example"}})
		for host, want := range map[string]int{"ops.example:443": http.StatusOK, "localhost": http.StatusMisdirectedRequest} {
			s.status(t, want, "GET", "style.css", nil, func(r *http.Request) { r.Host = host })
		}
	})
}

func TestEveryAnswerHasTheSecurityHeaders(t *testing.T) {
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

func TestRequestsFromOtherSitesChangeNothing(t *testing.T) {
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
				s.status(t, http.StatusForbidden, "POST", to, breakFormValues("job", g.Fence, "job"), from)
			}
		}
		if e, _ := s.client.Inspect(t.Context(), "job"); len(e.Holders) != 1 {
			t.Errorf("it is broken: %+v", e)
		}
		typed := func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "none")
			r.Header.Set("Origin", "http://localhost:7420")
		}
		s.status(t, http.StatusSeeOther, "POST", "break", breakFormValues("job", g.Fence, "job"), typed)
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
					t.Errorf("%s %s got the status %d and Allow %q, want 405 and %s", other, to, w.Code, w.Header().Get("Allow"), method)
				}
			}
		}
		s.status(t, http.StatusMethodNotAllowed, "POST", "", url.Values{}, nil)
	})
}

func TestLargeRequestsAreRefused(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, &dashboard.Options{AllowBreak: true})
		s.status(t, http.StatusRequestURITooLong, "GET", "?prefix="+strings.Repeat("x", 5000), nil, nil)
		g := s.take(t, claim("job", 1))
		long := breakFormValues("job", g.Fence, "job")
		long.Set("more", strings.Repeat("x", 5000))
		s.status(t, http.StatusRequestEntityTooLarge, "POST", "break", long, nil)
		s.status(t, http.StatusBadRequest, "POST", "break", long, func(r *http.Request) { r.ContentLength = -1 })
	})
}

// The handler works under any path, with the prefix stripped or not.
func TestTheHandlerWorksUnderAnyPath(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		s.take(t, claim("job", 1))
		time.Sleep(6 * time.Second)
		for _, to := range []string{"", "locks/", "a/b/"} {
			wantTexts(t, s.get(t, to), `href="style.css"`, `href="name?name=job"`)
			wantTexts(t, s.get(t, to+"name?name=job"), "host:1")
		}
		wantNoTexts(t, s.get(t, ""), `href="/`, `action="/`, `src="/`)
	})
}

func TestInvalidOptionsAreRefused(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		for _, o := range []*dashboard.Options{{Token: "short"}, {MaxStreams: -1}, {BreakDelay: 31 * 24 * time.Hour}} {
			if h, err := dashboard.New(s.client, o); err == nil || !strings.Contains(err.Error(), "allowed") {
				t.Errorf("New with %+v returned %v, %v; want an error with what is allowed", o, h, err)
			}
		}
		if _, err := dashboard.New((*pawl.Client)(nil), nil); err == nil {
			t.Error("New without a client returned no error")
		}
	})
}
