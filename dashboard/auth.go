package dashboard

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl/internal/markup"
)

const (
	minTokenSize    = 16 // bytes
	sessionLifetime = 12 * time.Hour
	maxSessions     = 10_000

	// The limits for wrong tokens: triesAtOnce, and then one for each triesPause. They
	// apply to each address. For all addresses together they are ten times as high.
	triesAtOnce  = 10
	triesPause   = 6 * time.Second
	maxAddresses = 1024 // the largest number of remembered addresses

	throttledPause = 50 * time.Millisecond // between two tokens of throttled addresses that are compared anyway
)

// auth checks the token, and keeps the sessions of browsers. A cookie does not have the
// token in it: its value is random. A restart ends all sessions.
type auth struct {
	required bool              // Options.Token is set
	token    [sha256.Size]byte // hashed, so that all comparisons have one length

	mu            sync.Mutex           // protects all below
	sessions      map[string]time.Time // their ends, by the values of their cookies
	throttleTimes map[string]time.Time // see throttledFor

	nextThrottled time.Time // before this time no token of a throttled address is compared
}

// allow reports whether a request has the token, or a valid cookie.
func (a *auth) allow(w http.ResponseWriter, r *http.Request) bool {
	given, bearer := bearerOf(r)
	return a.hasSession(r) || bearer && a.checkToken(w, r, given, true)
}

// hasSession reports whether a request has a valid cookie, or needs none. It compares no
// token in a header, which might be a guess, because only checkToken counts wrong tokens.
func (a *auth) hasSession(r *http.Request) bool {
	if !a.required {
		return true
	}
	c, err := r.Cookie(cookieName(r))
	if err != nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Now().Before(a.sessions[c.Value])
}

// stillAllowed reports whether a request that allow has let pass is still allowed.
func (a *auth) stillAllowed(r *http.Request) bool {
	given, bearer := bearerOf(r)
	return a.hasSession(r) || bearer && a.isToken(given)
}

// isToken compares a token in constant time.
func (a *auth) isToken(given string) bool {
	sum := sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(sum[:], a.token[:]) == 1
}

func bearerOf(r *http.Request) (token string, ok bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}

// cookieName has the port of the URL in it, because a browser sends a cookie to all ports
// of a host. Otherwise a dashboard on another port would replace the session of this one.
func cookieName(r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil && port != "" && strings.Trim(port, "0123456789") == "" {
		return "pawl_session_" + port
	}
	return "pawl_session"
}

// checkToken compares a token, unless too many wrong tokens came from its address. With
// evenThrottled it also compares some tokens of a throttled address, because a program
// with the token may share its address, such as a proxy's, with a program that guesses.
func (a *auth) checkToken(w http.ResponseWriter, r *http.Request, given string, evenThrottled bool) bool {
	now, from := time.Now(), addressOf(r)
	if wait := a.throttledFor(from, now); wait > 0 && !(evenThrottled && a.allowThrottled(now) && a.isToken(given)) {
		w.Header().Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
		return false
	}
	if a.isToken(given) {
		return true
	}
	a.countWrong(from, now)
	return false
}

// allowThrottled reports whether to compare a token although its address is throttled,
// which happens 20 times a second at most. Guessing 16 bytes at this rate takes for ever.
func (a *auth) allowThrottled(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Before(a.nextThrottled) {
		return false
	}
	a.nextThrottled = now.Add(throttledPause)
	return true
}

// addressOf returns the address of a request. For IPv6 it returns the network: one host
// has all its addresses, and could use up the tries that all addresses share.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	address = address.Unmap().WithZone("")
	if network, err := address.Prefix(64); err == nil && address.Is6() {
		return network.String()
	}
	return address.String()
}

// allAddresses is the key for all addresses together.
const allAddresses = ""

// throttledFor returns the time for which the dashboard compares no token of an address.
// Each wrong token moves the time of its address forward by a pause. While that time is
// more than triesAtOnce-1 pauses ahead of now, the address is throttled.
func (a *auth) throttledFor(from string, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	one := max(0, a.throttleTimes[from].Sub(now)) - (triesAtOnce-1)*triesPause
	all := max(0, a.throttleTimes[allAddresses].Sub(now)) - (triesAtOnce*10-1)*triesPause/10
	return max(one, all)
}

func (a *auth) countWrong(from string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.throttleTimes == nil {
		a.throttleTimes = map[string]time.Time{}
	}
	if len(a.throttleTimes) >= maxAddresses {
		for address, until := range a.throttleTimes {
			if until.Before(now) || len(a.throttleTimes) >= maxAddresses && address != allAddresses {
				delete(a.throttleTimes, address)
			}
		}
	}
	postpone := func(t time.Time, by time.Duration) time.Time {
		if t.Before(now) {
			t = now
		}
		return t.Add(by)
	}
	a.throttleTimes[from] = postpone(a.throttleTimes[from], triesPause)
	a.throttleTimes[allAddresses] = postpone(a.throttleTimes[allAddresses], triesPause/10)
}

// startSession starts a session. If there are too many, it first ends all others.
func (a *auth) startSession(w http.ResponseWriter, r *http.Request) {
	session, now := rand.Text(), time.Now()
	setCookie(w, r, session, int(sessionLifetime.Seconds()))
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.sessions, func(_ string, end time.Time) bool { return end.Before(now) })
	if a.sessions == nil || len(a.sessions) >= maxSessions {
		a.sessions = map[string]time.Time{}
	}
	a.sessions[session] = now.Add(sessionLifetime)
}

// endSession deletes the cookie, and ends its session, because there may be a copy of the
// cookie.
func (a *auth) endSession(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(cookieName(r)); err == nil {
		a.mu.Lock()
		delete(a.sessions, c.Value)
		a.mu.Unlock()
	}
	setCookie(w, r, "", -1)
}

// setCookie sets the cookie for this dashboard only, because its path is the path of the
// page that sets it.
func setCookie(w http.ResponseWriter, r *http.Request, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r), Value: value, MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
}

// askToken answers a request without the token with a form. why is the reason for which
// the last token was refused, or empty.
func (h *Handler) askToken(w http.ResponseWriter, r *http.Request, why string) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="pawl"`)
	status := http.StatusUnauthorized
	if wait := w.Header().Get("Retry-After"); wait != "" {
		status, why = http.StatusTooManyRequests, "Too many wrong tokens came from your address. Try again in "+wait+" s."
	}
	complaint := markup.HTML{}
	if why != "" {
		complaint = text("p", why, class("complaint"), markup.Attr("role", "alert"))
	}
	h.writePage(w, r, page{title: "Sign in", status: status, body: []markup.Part{
		markup.El("section", class("card narrow"),
			text("h1", "Sign in"), complaint,
			text("p", "Enter the token that this dashboard was started with."),
			markup.El("form", markup.Attr("method", "post"), markup.Link("action", "login"), class("stack"),
				text("label", "Token", markup.Attr("for", "token")),
				markup.El("input", markup.Attr("type", "password"), markup.Attr("id", "token"), markup.Attr("name", "token"),
					markup.Attr("required", ""), markup.Attr("autocomplete", "current-password"), markup.Attr("maxlength", "512")),
				text("button", "Sign in", markup.Attr("type", "submit"), class("primary"))),
		),
	}})
}

// login takes the token from the form, and sets a cookie. It takes no token from a URL,
// because a URL stays in histories and logs.
func (h *Handler) login(w http.ResponseWriter, r *http.Request) {
	if !h.auth.required {
		http.Redirect(w, r, "./", http.StatusSeeOther)
		return
	}
	given := r.PostFormValue("token")
	if given == "" || !h.auth.checkToken(w, r, given, false) {
		h.askToken(w, r, "This is not the token.")
		return
	}
	h.auth.startSession(w, r)
	http.Redirect(w, r, "./", http.StatusSeeOther)
}

func (h *Handler) logout(w http.ResponseWriter, r *http.Request) {
	h.auth.endSession(w, r)
	http.Redirect(w, r, "./", http.StatusSeeOther)
}
