package dashboard

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/access"
	"github.com/pawl-go/pawl/internal/overview"
)

// Options are the settings of a dashboard: what it shows and what it allows. The zero
// value and nil work, for a page that only this host can open.
type Options struct {
	// Hosts are the host names, without ports, that a request may use. The dashboard
	// refuses other hosts. Otherwise a foreign web page could read it by pointing its own
	// host name at this address (DNS rebinding). Default: LocalHosts().
	Hosts []string

	// Token, if not empty, is required to open the page: in a form, which sets a cookie
	// for 12 hours, or in the header "Authorization: Bearer TOKEN". At least 16 bytes.
	// Default: the page requires none.
	Token string

	// AllowBreak lets everyone who can open the page break leases. Default: false.
	AllowBreak bool

	// BreakDelay is the time for which a name stays closed after its lease is broken, so
	// that the holder can stop: up to 30 days. Default: the TTL of the lease, within
	// which a holder that cannot be reached gives up. A negative value means no time.
	BreakDelay time.Duration

	// Log gets a line for each break: who broke which fence, and when. Default:
	// slog.Default().
	Log *slog.Logger

	// Identify identifies the sender of a request in Log: from a header of a proxy, for
	// example. It is called for each break. Default: the name in the client's
	// certificate, if there is one, and its address.
	Identify func(*http.Request) string

	// MaxStreams is the number of pages that can be live at once. Further pages ask the
	// reader to reload. Default: 256.
	MaxStreams int

	// PollInterval is the time between two reads of the backend while no page is open,
	// for the timelines. Default: 5 s. A negative value means never.
	PollInterval time.Duration

	// Metrics adds numbers about clients of this process to /metrics. Default: none. Set
	// its Observer in the Options of the clients to count.
	Metrics *Metrics
}

// Handler is the dashboard of one client. Many goroutines may use it.
type Handler struct {
	options  Options
	overview *overview.Overview
	guard    guard
	auth     auth
	health   findings
	streams  chan struct{} // has room for MaxStreams
	routes   map[string]route

	proofKey [sha256.Size]byte

	ctx     context.Context //nolint:containedctx // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// A route serves the last part of a path.
type route struct {
	get, post http.HandlerFunc
	public    bool // served without the token, too
	hosts     hostSet
}

// New returns a dashboard that reads the client's backend until Close. The error matches
// pawl.ErrInvalid. o may be nil.
func New(c *pawl.Client, o *Options) (*Handler, error) {
	h := &Handler{}
	if o != nil {
		h.options = *o
	}
	if err := h.options.prepare(c); err != nil {
		return nil, err
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.overview = overview.New(c, &overview.Options{BackgroundInterval: max(0, h.options.PollInterval)})
	h.guard = newGuard(h.options.Hosts)
	h.auth = auth{token: sha256.Sum256([]byte(h.options.Token)), required: h.options.Token != ""}
	_, _ = rand.Read(h.proofKey[:]) // it never fails
	h.streams = make(chan struct{}, h.options.MaxStreams)
	h.routes = h.routeTable()
	h.running.Go(func() { h.overview.Run(h.ctx) })
	return h, nil
}

func (o *Options) prepare(c *pawl.Client) error {
	switch {
	case c == nil || access.Driver(c) == nil:
		return &pawl.InvalidError{Argument: "client", Problem: "is missing", Allowed: "one of Open or New"}
	case o.Token != "" && len(o.Token) < minTokenSize:
		return &pawl.InvalidError{Argument: "dashboard token", Problem: "is too short", Allowed: "16 bytes or more, for example of openssl rand -hex 32"}
	case o.MaxStreams < 0:
		return &pawl.InvalidError{Argument: "MaxStreams", Problem: "is negative", Allowed: "0 (the default) or more"}
	case o.BreakDelay > driver.MaxTTL:
		return &pawl.InvalidError{Argument: "BreakDelay", Problem: "is " + o.BreakDelay.String(), Allowed: "30 days at most"}
	}
	o.Log = cmp.Or(o.Log, slog.Default())
	if o.Identify == nil {
		o.Identify = senderOf
	}
	o.MaxStreams = cmp.Or(o.MaxStreams, 256)
	o.PollInterval = cmp.Or(o.PollInterval, 5*time.Second)
	return nil
}

// Close ends all streams, and stops reading the backend. It leaves the client open.
func (h *Handler) Close() {
	h.cancel()
	h.running.Wait()
}

// routeTable returns the routes, by the last part of their paths. There is only one
// level, so all links are relative, and the dashboard works under any path.
func (h *Handler) routeTable() map[string]route {
	return map[string]route{
		"":          {get: h.listPage},
		"name":      {get: h.namePage},
		"break":     {get: h.breakPage, post: h.breakPage},
		"health":    {get: h.healthPage},
		"metrics":   {get: h.serveMetrics, hosts: addresses},
		"healthz":   {get: h.healthz, public: true, hosts: allHosts},
		"login":     {get: func(w http.ResponseWriter, r *http.Request) { h.askToken(w, r, "") }, post: h.login, public: true},
		"logout":    {post: h.logout, public: true},
		"events":    {get: h.serveEvents},
		"icon.svg":  {get: asset("icon.svg", "image/svg+xml"), public: true},
		"style.css": {get: asset("style.css", "text/css; charset=utf-8"), public: true},
		"theme.js":  {get: asset("theme.js", "text/javascript; charset=utf-8"), public: true},
		"app.js":    {get: asset("app.js", "text/javascript; charset=utf-8"), public: true},
	}
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setSecurityHeaders(w.Header())
	_, last := path.Split(r.URL.Path)
	to, found := h.routes[last]
	if !h.guard.passes(w, r, to.hosts) {
		return
	}
	serve := to.get
	switch {
	case !found:
		h.refuse(w, r, http.StatusNotFound, "There is no such page.")
		return
	case r.Method == http.MethodPost:
		serve = to.post
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		serve = nil
	}
	if serve == nil {
		w.Header().Set("Allow", strings.Join(to.methods(), ", "))
		h.refuse(w, r, http.StatusMethodNotAllowed, "This page takes "+strings.Join(to.methods(), ", ")+".")
		return
	}
	if !to.public && !h.auth.allow(w, r) {
		h.askToken(w, r, "")
		return
	}
	serve(w, r)
}

func (t route) methods() (all []string) {
	if t.get != nil {
		all = append(all, http.MethodGet, http.MethodHead)
	}
	if t.post != nil {
		all = append(all, http.MethodPost)
	}
	return all
}
