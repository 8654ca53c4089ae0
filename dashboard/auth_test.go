package dashboard_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/dashboard"
	"github.com/pawl-go/pawl/internal/bubble"
)

const token = "0123456789abcdef0123456789abcdef"

func signIn(s *site, t *testing.T, given string, change func(*http.Request)) (int, *http.Cookie) {
	t.Helper()
	w := s.request(t, "POST", "login", tokenForm(given), change)
	for _, c := range w.Result().Cookies() {
		return w.Code, c
	}
	return w.Code, nil
}

func tokenForm(given string) url.Values { return url.Values{"token": {given}} }

func withCookie(c *http.Cookie) func(*http.Request) { return func(r *http.Request) { r.AddCookie(c) } }

func TestWithoutTheTokenNoPageIsShown(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, &dashboard.Options{Token: token, AllowBreak: true})
		g := s.take(t, claim("secret-job", 1))
		time.Sleep(6 * time.Second)
		for _, to := range []string{"", "name?name=secret-job", "events?view=list", "health", "metrics", fmt.Sprintf("break?name=secret-job&fence=%d", g.Fence), "?token=" + token} {
			wantNoTexts(t, s.status(t, http.StatusUnauthorized, "GET", to, nil, nil), "secret-job", "Locks on")
		}
		s.status(t, http.StatusUnauthorized, "POST", "break", breakFormValues("secret-job", g.Fence, "secret-job"), nil)
		wantNoTexts(t, s.status(t, http.StatusNotFound, "GET", "nowhere", nil, nil), "Locks on") // names the backend
		for _, to := range []string{"healthz", "style.css", "app.js", "theme.js"} {
			s.get(t, to)
		}
	})
}

func TestTheTokenOpensThePage(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, &dashboard.Options{Token: token})
		s.take(t, claim("job", 1))
		time.Sleep(6 * time.Second)
		code, cookie := signIn(s, t, token, nil)
		if code != http.StatusSeeOther || cookie == nil || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Secure || strings.Contains(cookie.Value, token) {
			t.Fatalf("the status is %d, and the cookie %+v; want a redirect and a safe cookie", code, cookie)
		}
		wantTexts(t, s.status(t, http.StatusOK, "GET", "", nil, withCookie(cookie)), "host:1", "Sign out", "Locks on")
		bearer := func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
		wantTexts(t, s.status(t, http.StatusOK, "GET", "metrics", nil, bearer), "pawl_names 1")

		if _, c := signIn(s, t, token, func(r *http.Request) { r.TLS = &tls.ConnectionState{} }); c == nil || !c.Secure {
			t.Errorf("over TLS the cookie is %+v", c)
		}
		time.Sleep(12 * time.Hour)
		s.status(t, http.StatusUnauthorized, "GET", "", nil, withCookie(cookie))
	})
}

func TestCookiesCannotBeForged(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, other := newSite(t, &dashboard.Options{Token: token}), newSite(t, &dashboard.Options{Token: token})
		_, cookie := signIn(other, t, token, nil)
		for _, value := range []string{cookie.Value, "", "x", strings.Repeat("A", 54), strings.Repeat("A", 3000)} {
			s.status(t, http.StatusUnauthorized, "GET", "", nil, withCookie(&http.Cookie{Name: cookie.Name, Value: value}))
		}
		_, own := signIn(s, t, token, nil)
		changed := []byte(own.Value)
		changed[3] ^= 1
		s.status(t, http.StatusUnauthorized, "GET", "", nil, withCookie(&http.Cookie{Name: own.Name, Value: string(changed)}))
	})
}

// A browser sends the cookies of a host to all ports of that host.
func TestTwoDashboardsOfAHostKeepTheirSessions(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		names := map[string]bool{}
		for _, host := range []string{"localhost", "localhost:8080", "127.0.0.1:8081", "[::1]:8082", "localhost:"} {
			s := newSite(t, &dashboard.Options{Token: token})
			at := func(r *http.Request) { r.Host = host }
			_, c := signIn(s, t, token, at)
			if c == nil {
				t.Fatalf("%s: there is no cookie", host)
			}
			names[c.Name] = true
			both := func(r *http.Request) { at(r); r.AddCookie(c) }
			s.status(t, http.StatusOK, "GET", "", nil, both)
			out := s.request(t, "POST", "logout", nil, both)
			if gone := out.Result().Cookies(); len(gone) != 1 || gone[0].Name != c.Name || gone[0].MaxAge >= 0 {
				t.Errorf("%s: signing out sets the cookies %v, want %s deleted", host, gone, c.Name)
			}
		}
		if len(names) != 4 {
			t.Errorf("the cookies of four ports are named %v", names)
		}
	})
}

func TestWrongTokensFromOneAddressAreThrottled(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, &dashboard.Options{Token: token})
		_, before := signIn(s, t, token, nil)
		compared := 0
		for i := range 1000 {
			switch code, c := signIn(s, t, fmt.Sprintf("wrong %d", i), nil); {
			case c != nil:
				t.Fatal("a wrong token started a session")
			case code == http.StatusUnauthorized:
				compared++
			case code != http.StatusTooManyRequests:
				t.Fatalf("the status is %d", code)
			}
		}
		if compared != 10 {
			t.Errorf("%d tokens were compared, want 10", compared)
		}
		s.status(t, http.StatusTooManyRequests, "POST", "login", tokenForm(token), nil)
		for _, given := range []string{"Bearer " + token, "bearer  " + token, "BEARER " + token} {
			header := func(r *http.Request) { r.Header.Set("Authorization", given) }
			s.status(t, http.StatusOK, "GET", "metrics", nil, header)
			s.status(t, http.StatusTooManyRequests, "GET", "metrics", nil, header) // else it compares all guesses
			time.Sleep(50 * time.Millisecond)
		}
		s.status(t, http.StatusUnauthorized, "GET", "metrics", nil, func(r *http.Request) { r.Header.Set("Authorization", "Basic "+token) })
		s.status(t, http.StatusSeeOther, "POST", "login", tokenForm(token), func(r *http.Request) { r.RemoteAddr = "10.0.0.9:1" })
		s.status(t, http.StatusOK, "GET", "", nil, withCookie(before))
		time.Sleep(time.Minute)
		s.status(t, http.StatusSeeOther, "POST", "login", tokenForm(token), nil)
	})
}

// The limit also applies to requests from many addresses. The handler remembers a bounded
// number of addresses.
func TestWrongTokensFromManyAddressesAreThrottled(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, &dashboard.Options{Token: token})
		compared := 0
		for i := range 5000 {
			code, _ := signIn(s, t, "wrong", func(r *http.Request) { r.RemoteAddr = fmt.Sprintf("10.%d.%d.1:1", i/250, i%250) })
			if code == http.StatusUnauthorized {
				compared++
			}
		}
		if compared != 100 {
			t.Errorf("%d tokens were compared, want 100", compared)
		}
	})
}

// One host may use every address of its network, and counts as one client. So it cannot
// lock out other networks.
func TestWrongTokensFromOneNetworkAreThrottled(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, &dashboard.Options{Token: token})
		from := func(address string) func(*http.Request) {
			return func(r *http.Request) { r.RemoteAddr = "[" + address + "]:1" }
		}
		for network, addresses := range map[string][2]string{
			"a network":     {"2001:db8:1:2:%x::%x", "2001:db8:1:2::ffff"},
			"a link's zone": {"fe80::%x:%x%%eth0", "fe80::ffff%eth1"},
		} {
			compared := 0
			for i := range 1000 {
				if code, _ := signIn(s, t, "wrong", from(fmt.Sprintf(addresses[0], i/250+1, i%250+1))); code == http.StatusUnauthorized {
					compared++
				}
			}
			if compared != 10 {
				t.Errorf("%s: %d tokens were compared, want 10", network, compared)
			}
			s.status(t, http.StatusTooManyRequests, "POST", "login", tokenForm(token), from(addresses[1]))
		}
		for _, elsewhere := range []string{"2001:db8:1:3::1", "::ffff:10.0.0.1", "::1"} {
			s.status(t, http.StatusSeeOther, "POST", "login", tokenForm(token), from(elsewhere))
		}
		for range 10 {
			signIn(s, t, "wrong", from("::ffff:10.0.0.1"))
		}
		for address, want := range map[string]int{"::ffff:10.0.0.2": http.StatusSeeOther, "::ffff:10.0.0.1": http.StatusTooManyRequests} {
			s.status(t, want, "POST", "login", tokenForm(token), from(address))
		}
	})
}

// The answer has the time to wait. After that, the page accepts the token.
func TestRetryAfterSaysWhenATokenIsComparedAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, &dashboard.Options{Token: token})
		for range 10 {
			signIn(s, t, "wrong", nil)
		}
		for _, want := range []string{"6", "5"} {
			w := s.request(t, "POST", "login", tokenForm(token), nil)
			if got := w.Header().Get("Retry-After"); w.Code != http.StatusTooManyRequests || got != want {
				t.Errorf("the status is %d, and Retry-After %q, want %s", w.Code, got, want)
			}
			wantTexts(t, w.Body.String(), "Try again in "+want+" s.")
			time.Sleep(1500 * time.Millisecond) // 4.5 s are left, rounded up to 5
		}
		time.Sleep(3 * time.Second)
		s.status(t, http.StatusSeeOther, "POST", "login", tokenForm(token), nil)
	})
}

// After a sign-out a copy of the cookie is useless, and open streams end.
func TestSigningOutEndsTheSession(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, &dashboard.Options{Token: token})
		_, one := signIn(s, t, token, nil)
		_, other := signIn(s, t, token, nil)
		stream := s.openWith(t.Context(), "events?view=list", withCookie(one))
		left := s.openWith(t.Context(), "events?view=list", withCookie(other))
		byHeader := s.openWith(t.Context(), "events?view=list", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) })
		time.Sleep(time.Minute)
		if hasEnded(stream) {
			t.Fatal("the stream has ended before")
		}
		s.request(t, "POST", "logout", url.Values{}, withCookie(one))
		time.Sleep(time.Minute)
		for c, want := range map[*http.Cookie]int{one: http.StatusUnauthorized, other: http.StatusOK} {
			s.status(t, want, "GET", "", nil, withCookie(c))
		}
		if !hasEnded(stream) || hasEnded(left) || hasEnded(byHeader) {
			t.Errorf("its stream has ended: %v, the others have ended: %v, %v", hasEnded(stream), hasEnded(left), hasEnded(byHeader))
		}
		if testing.Short() {
			return // make test-all runs the rest: 12 hours with a scan each second
		}
		time.Sleep(12 * time.Hour)
		if !hasEnded(left) || hasEnded(byHeader) {
			t.Errorf("after 12 hours the stream of a cookie has ended: %v, that of a token: %v", hasEnded(left), hasEnded(byHeader))
		}
	})
}

// A session stays ended, even if many others sign out later.
func TestASessionThatWasEndedStaysEnded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, &dashboard.Options{Token: token})
		_, first := signIn(s, t, token, nil)
		s.request(t, "POST", "logout", url.Values{}, withCookie(first))
		for i := range 1100 {
			_, c := signIn(s, t, token, nil)
			s.request(t, "POST", "logout", url.Values{}, withCookie(c))
			if i%50 != 0 && i < 1020 {
				continue
			}
			s.status(t, http.StatusUnauthorized, "GET", "", nil, withCookie(first))
		}
	})
}

func hasEnded(s *stream) bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}
