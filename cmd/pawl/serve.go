package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
	"github.com/pawl-go/pawl/dashboard"
)

type serveCommand struct {
	v          *output
	listen     string
	hosts      []string
	allowBreak bool
	delay      time.Duration // of pawl.BreakOptions
	tokenFile  string
	cert, key  string
	clientCA   string
}

func newServe(v *output, loc *location) *cobra.Command {
	s := serveCommand{v: v}
	cmd := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Show the locks in a browser",
		Long: `Serve shows the locks in a browser, live: who holds what, since when, who waits,
who blocks whom, and what happened to each name while a browser showed the page.
It prints the URL of the page, and runs until a signal ends it.

By default, only this host can open the page. If --listen lets others open it,
a browser must give the token of --token-file, or a certificate of --client-ca.
Serve refuses requests for hosts other than those of --listen and --host,
except for /healthz, and for /metrics under an IP address.

With --allow-break a lease can be broken from the page. Standard error then logs
each break, and who did it.

/metrics is for Prometheus, and /healthz for a probe.

The exit code is 0 after a signal, 64 for wrong usage, 69 if the database is
unavailable at the start, and 1 if serve cannot listen on the address.`,
		Example: `  pawl serve
  pawl serve --allow-break --listen 127.0.0.1:8080
  pawl serve --listen :7420 --host locks.example --token-file /etc/pawl/token \
    --tls-cert cert.pem --tls-key key.pem`,
		Args: cobra.MatchAll(noArgs, s.check),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := v.interruptible(cmd)
			defer stop()
			c, err := loc.openClient(ctx, cmd)
			if _, noFile := errors.AsType[*noDefaultFileError](err); noFile { // create the file, to show locks to come
				var url string
				if url, _, err = loc.findURL(cmd); err == nil {
					c, err = pawl.Open(ctx, url, loc.options())
				}
			}
			if err != nil {
				return orSignal(ctx, err)
			}
			defer closeSoon(c) //nolint:errcheck // it holds nothing
			return orSignal(ctx, s.run(ctx, c))
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&s.listen, "listen", "127.0.0.1:7420", "the `ADDRESS` to listen on; port 0 chooses a free port")
	flags.StringArrayVar(&s.hosts, "host", nil, "another `NAME` under which browsers open the page (repeatable)")
	flags.BoolVar(&s.allowBreak, "allow-break", false, "let leases be broken from the page")
	flags.Var((*breakDelay)(&s.delay), "delay", "how long a name stays closed after its lease is broken (default the TTL of the lease)")
	flags.StringVar(&s.tokenFile, "token-file", "", "ask for the token that this `FILE` has, at least 16 bytes")
	flags.StringVar(&s.cert, "tls-cert", "", "serve HTTPS with the certificate in this `FILE`")
	flags.StringVar(&s.key, "tls-key", "", "use the key in this `FILE` with the certificate")
	flags.StringVar(&s.clientCA, "client-ca", "", "admit only clients with a certificate of a CA in this `FILE`")
	completeFiles(cmd, "token-file", "tls-cert", "tls-key", "client-ca")
	return cmd
}

// check returns an error for flags that are invalid, or would let anyone open the page.
func (s *serveCommand) check(cmd *cobra.Command, _ []string) error {
	host, _, err := net.SplitHostPort(s.listen)
	problem := ""
	switch {
	case err != nil:
		problem = fmt.Sprintf("--listen is %q; want HOST:PORT, like 127.0.0.1:7420", s.listen)
	case slices.ContainsFunc(s.hosts, isInvalidHost):
		problem = fmt.Sprintf("--host is %q; want a name without a port, like locks.example", s.hosts[slices.IndexFunc(s.hosts, isInvalidHost)])
	case (s.cert == "") != (s.key == ""):
		problem = "--tls-cert and --tls-key go together"
	case s.clientCA != "" && s.cert == "":
		problem = "--client-ca requires --tls-cert and --tls-key"
	case !isLoopback(host) && s.tokenFile == "" && s.clientCA == "":
		problem = fmt.Sprintf("--listen %s can be reached by others; use --token-file, or --client-ca with --tls-cert and --tls-key", s.listen)
	}
	if problem != "" {
		return usageError(cmd, errors.New(problem))
	}
	return usageError(cmd, checkBreakDelay(s.delay))
}

// isInvalidHost reports whether a browser can never send this as a host name.
func isInvalidHost(name string) bool {
	_, _, err := net.SplitHostPort(name)
	return name == "" || err == nil || strings.ContainsAny(name, "/\\*@?#[] ")
}

// isLoopback reports whether only this host can reach an address. It accepts the name
// localhost, whatever the system resolves it to.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (s *serveCommand) run(ctx context.Context, c *pawl.Client) error {
	o, err := s.options()
	if err != nil {
		return err
	}
	tlsConfig, err := s.tls()
	if err != nil {
		return err
	}
	h, err := dashboard.New(c, o)
	if err != nil {
		return err
	}
	defer h.Close()
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", s.listen)
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	server := &http.Server{
		Handler: logPanics(h, o.Log), TLSConfig: tlsConfig,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // no log of clients' mistakes
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	scheme, serve := "http", func() error { return server.Serve(l) }
	if tlsConfig != nil {
		scheme, serve = "https", func() error { return server.ServeTLS(l, "", "") }
	} else if !isLoopback(hostOf(s.listen)) {
		s.v.warn("the token crosses the network unencrypted; use --tls-cert, or a proxy with TLS in front")
	}
	if _, err := fmt.Fprintf(s.v.out, "%s://%s/\n", scheme, s.address(l)); err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- serve() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	h.Close() // ends its streams
	shutdownCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if server.Shutdown(shutdownCtx) != nil {
		_ = server.Close()
	}
	return nil
}

func hostOf(address string) string {
	host, _, _ := net.SplitHostPort(address) // check has already parsed it
	return host
}

// address returns the address for a browser.
func (s *serveCommand) address(l net.Listener) string {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	host := hostOf(s.listen)
	if len(s.hosts) > 0 {
		host = s.hosts[0]
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

func (s *serveCommand) options() (*dashboard.Options, error) {
	o := &dashboard.Options{
		Hosts:      append(dashboard.LocalHosts(), s.hosts...),
		AllowBreak: s.allowBreak, BreakDelay: s.delay,
		Log: slog.New(slog.NewTextHandler(s.v.err, nil)),
	}
	if ip := net.ParseIP(hostOf(s.listen)); hostOf(s.listen) != "" && (ip == nil || !ip.IsUnspecified()) {
		o.Hosts = append(o.Hosts, hostOf(s.listen))
	}
	if s.tokenFile == "" {
		return o, nil
	}
	token, err := os.ReadFile(s.tokenFile)
	if err != nil {
		return nil, &exit{code: exitUsage, err: fmt.Errorf("cannot read the token: %w", err)}
	}
	if info, err := os.Stat(s.tokenFile); err == nil && isReadByOthers(info) {
		s.v.warn("others can read the token in %s, and open the page with it; chmod 600 hides it", words.QuoteIfNeeded(s.tokenFile))
	}
	if o.Token = strings.TrimSpace(string(token)); o.Token == "" || strings.ContainsAny(o.Token, "\r\n") {
		return nil, &exit{code: exitUsage, err: fmt.Errorf("%s has no token, or more than one; write one, for example with openssl rand -hex 32", words.QuoteIfNeeded(s.tokenFile))}
	}
	return o, nil
}

// tls returns nil without a certificate. Each connection reads the files again, because
// they may be replaced while the page is served. If they are invalid, maybe because
// another program is writing them, the connection uses their last valid content.
func (s *serveCommand) tls() (*tls.Config, error) {
	if s.cert == "" {
		return nil, nil //nolint:nilnil // http.Server wants it so
	}
	var lastValid atomic.Pointer[tls.Config]
	read := func() (*tls.Config, error) {
		config, err := s.readTLS()
		if err == nil {
			lastValid.Store(config)
		}
		return lastValid.Load(), err
	}
	first, err := read()
	if err != nil {
		return nil, err
	}
	config := first.Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		current, _ := read()
		return current, nil
	}
	return config, nil
}

func (s *serveCommand) readTLS() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(s.cert, s.key)
	if err != nil {
		return nil, &exit{code: exitUsage, err: fmt.Errorf("cannot use the certificate: %w", err)}
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if s.clientCA == "" {
		return config, nil
	}
	file, err := os.ReadFile(s.clientCA)
	config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if err == nil && !config.ClientCAs.AppendCertsFromPEM(file) {
		err = fmt.Errorf("%s has no certificate", words.QuoteIfNeeded(s.clientCA))
	}
	if err != nil {
		return nil, &exit{code: exitUsage, err: fmt.Errorf("cannot use the client CA: %w", err)}
	}
	return config, nil
}

// logPanics logs a handler's panic. The server would log it to its own log, which pawl
// discards, because it is full of clients' mistakes.
func logPanics(h http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			why := recover()
			if why == nil {
				return
			}
			if err, isErr := why.(error); !isErr || !errors.Is(err, http.ErrAbortHandler) {
				log.ErrorContext(r.Context(), "pawl: panic", "method", r.Method, "path", r.URL.Path,
					"panic", fmt.Sprint(why), "stack", string(debug.Stack()))
			}
			panic(http.ErrAbortHandler) // the server closes the connection without a message
		}()
		h.ServeHTTP(w, r)
	})
}
