package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/certtest"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/memlock"
)

// messages is the output of a command while it runs.
type messages = basictest.Lines

// servePage runs serve until the test ends. log is its standard error.
func servePage(t *testing.T, s serveCommand) (page string, client *pawl.Client, log *messages) {
	t.Helper()
	client = mustGet(pawl.New(memlock.New(nil), nil))(t)
	page, log = servePageOf(t, s, client)
	return page, client, log
}

// servePageOf runs serve with a client, and closes the client.
func servePageOf(t *testing.T, s serveCommand, client *pawl.Client) (page string, log *messages) {
	t.Helper()
	in, out := io.Pipe()
	log = &messages{}
	s.v = &output{out: out, err: log}
	if s.listen == "" {
		s.listen = "127.0.0.1:0"
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		err := s.run(ctx, client)
		_ = out.CloseWithError(err)
		ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = client.Close()
	})
	line := mustGet(bufio.NewReader(in).ReadString('\n'))(t)
	return strings.TrimSpace(line), log
}

func fetch(t *testing.T, c *http.Client, r *http.Request) (int, string) {
	t.Helper()
	answer := mustGet(c.Do(r))(t)
	defer answer.Body.Close()
	body := mustGet(io.ReadAll(answer.Body))(t)
	return answer.StatusCode, string(body)
}

func newGet(t *testing.T, to string) *http.Request {
	t.Helper()
	return mustGet(http.NewRequestWithContext(t.Context(), http.MethodGet, to, nil))(t)
}

func TestServeShowsAndBreaksALease(t *testing.T) {
	page, client, log := servePage(t, serveCommand{allowBreak: true})
	lease := mustGet(client.Mutex("nightly").Lock(t.Context()))(t)
	if code, body := fetch(t, http.DefaultClient, newGet(t, page+"name?name=nightly")); code != http.StatusOK || !strings.Contains(body, fmt.Sprint(lease.Fence())) {
		t.Errorf("%d\n%s", code, body)
	}
	form := url.Values{"name": {"nightly"}, "fence": {fmt.Sprint(lease.Fence())}, "typed": {"nightly"}}
	post := mustGet(http.NewRequestWithContext(t.Context(), http.MethodPost, page+"break", strings.NewReader(form.Encode())))(t)
	post.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if code, body := fetch(t, http.DefaultClient, post); code != http.StatusOK || !strings.Contains(body, "is broken") {
		t.Errorf("%d\n%s", code, body)
	}
	<-lease.Done()
	for _, want := range []string{"pawl: lease broken", "name=nightly", fmt.Sprintf("fence=%d", lease.Fence()), "by=127.0.0.1:"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("there is no %s in %s", want, log)
		}
	}
	r := newGet(t, page)
	r.Host = "evil.example"
	if code, _ := fetch(t, http.DefaultClient, r); code != http.StatusMisdirectedRequest {
		t.Errorf("for another host it answers %d", code)
	}
}

// An open stream does not prevent the end of serve. The cleanup requires that serve then
// returns no error.
func TestServeEndsWithAStreamOpen(t *testing.T) {
	page, _, _ := servePage(t, serveCommand{})
	answer := mustGet(http.DefaultClient.Do(newGet(t, page+"events?view=list")))(t)
	t.Cleanup(func() { _ = answer.Body.Close() })
	if _, err := bufio.NewReader(answer.Body).ReadString('\n'); err != nil {
		t.Error(err)
	}
}

func TestServeForOthersAsksForTheToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	noError(t, os.WriteFile(file, []byte("0123456789abcdef\n"), 0o600))
	page, _, log := servePage(t, serveCommand{listen: "0.0.0.0:0", tokenFile: file, hosts: []string{"locks.example"}})
	if !strings.HasPrefix(page, "http://locks.example:") || !strings.Contains(log.String(), "unencrypted") {
		t.Errorf("the page is %s, and the log has %s", page, log)
	}
	_, port, _ := net.SplitHostPort(strings.Trim(strings.TrimPrefix(page, "http://"), "/"))
	r := newGet(t, "http://127.0.0.1:"+port+"/")
	r.Host = "locks.example"
	if code, _ := fetch(t, http.DefaultClient, r); code != http.StatusUnauthorized {
		t.Errorf("without the token it answers %d", code)
	}
	r.Header.Set("Authorization", "Bearer 0123456789abcdef")
	if code, _ := fetch(t, http.DefaultClient, r); code != http.StatusOK {
		t.Errorf("with the token it answers %d", code)
	}
}

// visit opens a page with an operator's certificate, or without one if that is nil.
func visit(t *testing.T, page string, ca *certtest.Authority, operator *certtest.Identity) (code int, err error) {
	t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	config.RootCAs.AppendCertsFromPEM(mustGet(os.ReadFile(ca.File))(t))
	if operator != nil {
		config.Certificates = []tls.Certificate{mustGet(tls.LoadX509KeyPair(operator.Cert, operator.Key))(t)}
	}
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Do(newGet(t, page))
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// Serve requires certificates of its clients. Other programs replace its own certificate
// and the authorities while the page is served.
func TestServeWithCertificatesOfBothSides(t *testing.T) {
	ca := certtest.NewAuthority(t)
	server, operator := certtest.NewIdentity(t, t.TempDir(), ca, "localhost"), certtest.NewIdentity(t, t.TempDir(), ca, "operator")
	page, _, _ := servePage(t, serveCommand{listen: "0.0.0.0:0", cert: server.Cert, key: server.Key, clientCA: server.CA})
	if !strings.HasPrefix(page, "https://localhost:") {
		t.Errorf("the page is %s", page)
	}
	if code, err := visit(t, page, ca, nil); err == nil {
		t.Errorf("without a certificate it answers %d", code)
	}
	if code, err := visit(t, page, ca, operator); code != http.StatusOK {
		t.Errorf("it answers %d, %v", code, err)
	}
	next := certtest.NewAuthority(t)
	server.Replace(t, next)
	operator.Replace(t, next)
	if code, err := visit(t, page, next, operator); code != http.StatusOK {
		t.Errorf("with the new files it answers %d, %v", code, err)
	}
	for _, file := range []string{server.Cert, server.Key, server.CA} {
		noError(t, os.WriteFile(file, []byte("half"), 0o600))
	}
	if code, err := visit(t, page, next, operator); code != http.StatusOK {
		t.Errorf("while the files are written it answers %d, %v", code, err)
	}
}

func TestServeRefusesAnInvalidCA(t *testing.T) {
	server := certtest.NewIdentity(t, t.TempDir(), certtest.NewAuthority(t), "localhost")
	s := serveCommand{cert: server.Cert, key: server.Key}
	for file, want := range map[string]string{server.Key: "has no certificate", server.Key + ".none": "cannot use the client CA"} {
		s.clientCA = file
		if _, err := s.tls(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// A panicDriver panics in Inspect.
type panicDriver struct{ driver.Driver }

func (panicDriver) Inspect(context.Context, string) (driver.Entry, error) { panic("a fault of ours") }

// A panic ends only its answer. Serve logs it, and goes on.
func TestServeLogsAPanic(t *testing.T) {
	client := mustGet(pawl.New(panicDriver{engine.Full(memlock.New(nil))}, nil))(t)
	page, log := servePageOf(t, serveCommand{}, client)
	answer, err := http.DefaultClient.Do(newGet(t, page+"health"))
	if err == nil {
		_, err = io.ReadAll(answer.Body)
		_ = answer.Body.Close()
	}
	if err == nil {
		t.Error("the request that panics was answered")
	}
	for _, want := range []string{"level=ERROR", `msg="pawl: panic"`, "path=/health", `panic="a fault of ours"`, "serve_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("there is no %s in %s", want, log)
		}
	}
	if code, _ := fetch(t, http.DefaultClient, newGet(t, page+"healthz")); code != http.StatusOK {
		t.Errorf("after the panic, it answers %d", code)
	}
}

// A handler gives up an answer by a panic with http.ErrAbortHandler. That is no fault.
func TestAnAbortedAnswerIsNotLogged(t *testing.T) {
	var log bytes.Buffer
	h := logPanics(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), slog.New(slog.NewTextHandler(&log, nil)))
	defer func() {
		if why := recover(); why != http.ErrAbortHandler || log.Len() > 0 {
			t.Errorf("it panics with %v, and logs %s", why, &log)
		}
	}()
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
}
