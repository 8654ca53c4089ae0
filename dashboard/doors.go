package dashboard

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	leastToken = 16 // bytes
	sessionFor = 12 * time.Hour
	sessionID  = 8 // bytes

	// The limits for wrong tokens: triesAtOnce, and then one for each triesPause. They
	// apply to each address. For all addresses together they are ten times as high.
	triesAtOnce = 10
	triesPause  = 6 * time.Second
	mostKnown   = 1024 // the largest number of remembered addresses

	sparePause = 50 * time.Millisecond // between two tokens that are compared although their addresses are barred
)

// doors checks the token, and keeps the sessions of browsers. A cookie does not have the
// token in it. It has the end of its session, signed with a key of this process, so a
// restart ends all sessions. doors remembers a session that has signed out until the
// session's end.
type doors struct {
	asked bool
	token [sha256.Size]byte // hashed, so that all comparisons have one length

	mu    sync.Mutex // protects all below
	key   [32]byte
	over  map[string]time.Time // sessions that have signed out, and the ends in their cookies
	tries map[string]time.Time

	spared time.Time // before this time no token of a barred address is compared
}

// admits reports whether a request has the token, or a valid cookie.
func (d *doors) admits(w http.ResponseWriter, r *http.Request) bool {
	given, bearer := bearerOf(r)
	if d.knows(r) {
		return true
	}
	// A program with the token may share its address, such as that of a proxy, with a
	// program that guesses. So some tokens of a barred address are compared, too.
	return bearer && (d.spares(r) && d.is(given) || d.opens(w, r, given))
}

// knows reports whether a request has a valid cookie, or needs none. It ignores a token
// in a header, which might be a guess: only opens counts wrong tokens.
func (d *doors) knows(r *http.Request) bool {
	if !d.asked {
		return true
	}
	c, err := r.Cookie(cookieName(r))
	return err == nil && d.valid(c.Value, time.Now())
}

// stays reports whether a request that was admitted still is.
func (d *doors) stays(r *http.Request) bool {
	given, bearer := bearerOf(r)
	return d.knows(r) || bearer && d.is(given)
}

// is compares a token in constant time.
func (d *doors) is(given string) bool {
	sum := sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(sum[:], d.token[:]) == 1
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

// opens compares a token, unless too many wrong tokens came from its address.
func (d *doors) opens(w http.ResponseWriter, r *http.Request, given string) bool {
	now, from := time.Now(), addressOf(r)
	if wait := d.barred(from, now); wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
		return false
	}
	if d.is(given) {
		return true
	}
	d.wrong(from, now)
	return false
}

// spares reports whether to compare a token although its address is barred. That happens
// 20 times a second at most. Guessing 16 bytes at this rate takes for ever.
func (d *doors) spares(r *http.Request) bool {
	now := time.Now()
	if d.barred(addressOf(r), now) <= 0 {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Before(d.spared) {
		return false
	}
	d.spared = now.Add(sparePause)
	return true
}

// addressOf is the address of a request. For IPv6 it is the network, because one host has
// all addresses of the network, and could use up the tries of all addresses.
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

// The key for all addresses together.
const everybody = ""

// barred returns the time for which the dashboard compares no token of an address. Each
// wrong token moves the time of its address forward by a pause. While that time is more
// than triesAtOnce-1 pauses ahead of now, the address is barred.
func (d *doors) barred(from string, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	one := max(0, d.tries[from].Sub(now)) - (triesAtOnce-1)*triesPause
	all := max(0, d.tries[everybody].Sub(now)) - (triesAtOnce*10-1)*triesPause/10
	return max(one, all)
}

func (d *doors) wrong(from string, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tries == nil {
		d.tries = map[string]time.Time{}
	}
	if len(d.tries) >= mostKnown {
		for address, until := range d.tries {
			if until.Before(now) || len(d.tries) >= mostKnown && address != everybody {
				delete(d.tries, address)
			}
		}
	}
	later := func(t time.Time, by time.Duration) time.Time {
		if t.Before(now) {
			t = now
		}
		return t.Add(by)
	}
	d.tries[from] = later(d.tries[from], triesPause)
	d.tries[everybody] = later(d.tries[everybody], triesPause/10)
}

// admit sets the cookie, for this dashboard only, because its path is the path of the
// page that sets it.
func (d *doors) admit(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r), Value: d.session(time.Now().Add(sessionFor)), MaxAge: int(sessionFor.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
}

// leave deletes the cookie, and ends its session, because there may be a copy of the
// cookie.
func (d *doors) leave(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(cookieName(r)); err == nil && d.valid(c.Value, time.Now()) {
		d.endSession(c.Value, time.Now())
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName(r), MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil})
}

// endSession remembers an ended session. If there are too many, it ends all sessions.
func (d *doors) endSession(session string, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.over, func(_ string, until time.Time) bool { return until.Before(now) })
	if d.over == nil || len(d.over) >= mostKnown {
		if len(d.over) >= mostKnown {
			_, _ = rand.Read(d.key[:])
		}
		d.over = map[string]time.Time{}
	}
	d.over[session] = now.Add(sessionFor)
}

func (d *doors) isOver(session string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, over := d.over[session]
	return over
}

// session is the end of a session, random bytes that make it unique, and the signature.
func (d *doors) session(until time.Time) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(until.Unix()))
	b = append(b, make([]byte, sessionID)...)
	_, _ = rand.Read(b[8:])
	return base64.RawURLEncoding.EncodeToString(append(b, d.sign(b)...))
}

func (d *doors) sign(b []byte) []byte {
	d.mu.Lock()
	key := d.key
	d.mu.Unlock()
	m := hmac.New(sha256.New, key[:])
	m.Write(b)
	return m.Sum(nil)
}

func (d *doors) valid(session string, now time.Time) bool {
	b, err := base64.RawURLEncoding.DecodeString(session)
	signed := 8 + sessionID
	if err != nil || len(b) != signed+sha256.Size || !hmac.Equal(b[signed:], d.sign(b[:signed])) || d.isOver(session) {
		return false
	}
	return now.Unix() < int64(binary.BigEndian.Uint64(b[:8]))
}
