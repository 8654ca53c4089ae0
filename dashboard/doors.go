package dashboard

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	leastToken = 16 // bytes
	cookieName = "pawl_session"
	sessionFor = 12 * time.Hour

	// Wrong tokens: so many at once, and then one for each pause, for each address and,
	// ten times as many, for all together.
	triesAtOnce = 10
	triesPause  = 6 * time.Second
	mostKnown   = 1024 // addresses that are remembered
)

// doors ask for the token. A cookie has no token: it says until when it is good, signed
// with a key of this process, so a restart ends all sessions.
type doors struct {
	asked bool
	token [sha256.Size]byte // of the token, so that all comparisons are of one length
	key   [32]byte

	mu    sync.Mutex // protects all below
	tries map[string]time.Time
}

// admits reports whether a request has the token, or the cookie of somebody who had.
func (d *doors) admits(w http.ResponseWriter, r *http.Request) bool {
	given, bearer := bearerOf(r)
	return d.knows(r) || bearer && d.opens(w, r, given)
}

// knows reports whether a request is of somebody who is in. A token in a header is not
// looked at: whoever might be guessing goes through opens.
func (d *doors) knows(r *http.Request) bool {
	if !d.asked {
		return true
	}
	c, err := r.Cookie(cookieName)
	return err == nil && d.valid(c.Value, time.Now())
}

func bearerOf(r *http.Request) (token string, ok bool) {
	return strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
}

// opens compares a token that was given, unless too many wrong ones came from there. It
// takes the same time whatever the token is.
func (d *doors) opens(w http.ResponseWriter, r *http.Request, given string) bool {
	now, from := time.Now(), addressOf(r)
	if wait := d.barred(from, now); wait > 0 {
		w.Header().Set("Retry-After", "60")
		return false
	}
	sum := sha256.Sum256([]byte(given))
	if subtle.ConstantTimeCompare(sum[:], d.token[:]) == 1 {
		return true
	}
	d.wrong(from, now)
	return false
}

func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// everybody stands for all addresses together.
const everybody = ""

// barred is for how long no token is looked at. Each wrong one moves the time of an
// address on by a pause, and it may be ahead by as many as are allowed at once.
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

// admit sets the cookie. It goes to this dashboard only: its path is that of the page
// that sets it.
func (d *doors) admit(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: d.session(time.Now().Add(sessionFor)), MaxAge: int(sessionFor.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
}

// leave takes the cookie back.
func (d *doors) leave(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: cookieName, MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil})
}

func (d *doors) session(until time.Time) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(until.Unix()))
	return base64.RawURLEncoding.EncodeToString(append(b, d.sign(b)...))
}

func (d *doors) sign(b []byte) []byte {
	m := hmac.New(sha256.New, d.key[:])
	m.Write(b)
	m.Write(d.token[:])
	return m.Sum(nil)
}

func (d *doors) valid(session string, now time.Time) bool {
	b, err := base64.RawURLEncoding.DecodeString(session)
	if err != nil || len(b) != 8+sha256.Size || !hmac.Equal(b[8:], d.sign(b[:8])) {
		return false
	}
	return now.Unix() < int64(binary.BigEndian.Uint64(b[:8]))
}
