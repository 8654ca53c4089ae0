package dashboard

import (
	"net"
	"net/http"
	"slices"
	"strings"
)

// secure sets the headers that every answer has. No page of ours has a script or a style
// of its own, so the browser is told to run none.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY") // for browsers that do not know frame-ancestors
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
}

// What a request may bring.
const (
	mostBody = 4 << 10
	mostURL  = 4 << 10
)

// LocalHosts are the names of the host itself, which are the default of Options.Hosts:
// localhost, 127.0.0.1 and ::1. The slice is the caller's own.
func LocalHosts() []string { return []string{"localhost", "127.0.0.1", "::1"} }

// A guard refuses requests before anything looks at what they want.
type guard struct {
	hosts []string
	cross *http.CrossOriginProtection
}

func newGuard(hosts []string) guard {
	g := guard{cross: http.NewCrossOriginProtection()}
	if len(hosts) == 0 {
		hosts = LocalHosts()
	}
	for _, host := range hosts {
		g.hosts = append(g.hosts, hostOf(host))
	}
	return g
}

// hostOf is a host without its port, as it is compared.
func hostOf(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// passes refuses what is for another host, comes from another site and would change
// something, or is too large. A page of another site whose name leads here is of the same
// origin as this one, as far as the browser can tell: so the host is looked at first, and
// for every request, except of a page that says nothing of the locks (anyHost): a kubelet
// asks by the address of the pod, which nobody knows before.
func (g *guard) passes(w http.ResponseWriter, r *http.Request, anyHost bool) bool {
	switch {
	case !anyHost && !slices.Contains(g.hosts, hostOf(r.Host)):
		http.Error(w, "pawl: this dashboard does not answer for this host; see Hosts, or --host of pawl serve", http.StatusMisdirectedRequest)
	case len(r.URL.RawQuery)+len(r.URL.Path) > mostURL:
		http.Error(w, "pawl: the URL is too long", http.StatusRequestURITooLong)
	case r.ContentLength > mostBody:
		http.Error(w, "pawl: the request is too large", http.StatusRequestEntityTooLarge)
	case g.cross.Check(r) != nil:
		http.Error(w, "pawl: this request comes from another site", http.StatusForbidden)
	default:
		r.Body = http.MaxBytesReader(w, r.Body, mostBody)
		return true
	}
	return false
}

// who is how a sender is named in the log, if nobody says it better.
func who(r *http.Request) string {
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return r.TLS.VerifiedChains[0][0].Subject.CommonName + " " + r.RemoteAddr
	}
	return r.RemoteAddr
}
