package dashboard

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// setSecurityHeaders sets the headers of every answer. No page has inline scripts or
// styles, so the headers forbid the browser to run any.
func setSecurityHeaders(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY") // for browsers without frame-ancestors
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
}

// The largest requests.
const (
	maxBodySize = 4 << 10
	maxURLSize  = 4 << 10
)

// LocalHosts are the names of the host itself, the default of Options.Hosts: localhost,
// 127.0.0.1 and ::1. The caller owns the slice.
func LocalHosts() []string { return []string{"localhost", "127.0.0.1", "::1"} }

// A hostSet is the set of host names under which a route answers.
type hostSet int

const (
	ownHosts  hostSet = iota // Options.Hosts
	addresses                // Options.Hosts, and all IP addresses, which DNS rebinding cannot use
	allHosts
)

// A guard refuses requests before any handler reads them.
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

// hostOf returns a host without its port, in a form to compare.
func hostOf(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// passes refuses a wrong host name, a change from another site, and a request that is too
// large; it returns true for other requests. It checks the host first, on every request:
// if another site's host name resolves to this address, the browser counts its page as
// the same origin. A kubelet and Prometheus use the pod's address, which is not known in
// advance, as the host.
func (g *guard) passes(w http.ResponseWriter, r *http.Request, hosts hostSet) bool {
	host := hostOf(r.Host)
	_, notAddress := netip.ParseAddr(host)
	answers := hosts == allHosts || hosts == addresses && notAddress == nil || slices.Contains(g.hosts, host)
	switch {
	case !answers:
		http.Error(w, "pawl: this dashboard does not answer for this host; see Hosts, or --host of pawl serve", http.StatusMisdirectedRequest)
	case len(r.URL.RawQuery)+len(r.URL.Path) > maxURLSize:
		http.Error(w, "pawl: the URL is too long", http.StatusRequestURITooLong)
	case r.ContentLength > maxBodySize:
		http.Error(w, "pawl: the request is too large", http.StatusRequestEntityTooLarge)
	case g.cross.Check(r) != nil || isCrossOrigin(r):
		http.Error(w, "pawl: this request comes from another site", http.StatusForbidden)
	default:
		r.Body = http.MaxBytesReader(w, r.Body, maxBodySize)
		return true
	}
	return false
}

// isCrossOrigin reports whether a request that changes something has the Origin of
// another site, though its Sec-Fetch-Site says that a person has typed the URL. No
// browser sends such a request, but http.CrossOriginProtection lets it pass.
func isCrossOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || r.Header.Get("Sec-Fetch-Site") != "none" || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return false
	}
	from, err := url.Parse(origin)
	return err != nil || from.Host != r.Host
}

// senderOf returns the default name of a sender for the log.
func senderOf(r *http.Request) string {
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return r.TLS.VerifiedChains[0][0].Subject.CommonName + " " + r.RemoteAddr
	}
	return r.RemoteAddr
}
