package natslock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/natstest"
	"github.com/pawl-go/pawl/natslock"
)

// checkNoPassword fails the test if err, or an error that it wraps, shows the password.
func checkNoPassword(t *testing.T, err error) {
	t.Helper()
	for e := err; e != nil; e = errors.Unwrap(e) {
		if strings.Contains(fmt.Sprintf("%v %+v %#v", e, e, e), "hunter2") {
			t.Errorf("%v shows the password", err)
		}
	}
}

// Open refuses an invalid URL before it connects.
func TestURLsThatAreRefused(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"nats:host":                              "no //",
		"nats://host#x":                          "a #",
		"nats://host:99999":                      "port",
		"nats://host/a/b":                        "bucket",
		"nats://host/a.b":                        "bucket",
		"nats://host/" + strings.Repeat("b", 65): "bucket",
		"nats://host?replicas=0":                 "replicas",
		"nats://host?replicas=6":                 "replicas",
		"nats://host?replicas=x":                 "replicas",
		"nats://host?storage=disk":               "storage",
		"nats://host?create=maybe":               "create",
		"nats://host?push=maybe":                 "push",
		"nats://host?tls=maybe":                  "tls",
		"nats://host?skip_verify=maybe":          "skip_verify",
		"nats://host?retention=1":                "retention",
		"nats://host?retention=1s":               "retention",
		"nats://host?retention=1000h":            "retention",
		"nats://host?domain=a.b":                 "domain",
		"nats://host?inbox=*":                    "inbox",
		"nats://host?creds=/not/there":           "creds",
		"nats://host?nkey=/not/there":            "nkey",
		"nats://host?nkey=hunter2":               "nkey", // the seed itself, where its file belongs
		"nats://host?ca_cert=/not/there":         "ca_cert",
		"nats://host?client_cert=/not/there":     "client_cert",
		"nats://host?client_cert=a&client_key=b": "client_cert",
		"nats://host?nonsense=1":                 "nonsense",
		"nats://host?push=false&push=true":       "twice",
		"nats://host/?replicas=hunter2":          "replicas",
	} {
		_, err := natslock.Open(ctx, strings.Replace(url, "//host", "//joe:hunter2@host", 1))
		checkNoPassword(t, err)
		if _, ok := errors.AsType[*driver.InvalidError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want an error about its %s", url, err, want)
		}
	}
}

// With a valid URL, Open tries to connect.
func TestURLsThatAreAccepted(t *testing.T) {
	t.Parallel()
	seed := filepath.Join(t.TempDir(), "seed")
	noError(t, os.WriteFile(seed, []byte("SUAMLK2ZNL35WSMW37E7UD4VZ7ELPKW7DHC3BWBSD2GCZ7IUQQXZIORRBU"), 0o600))
	for _, url := range []string{
		"nats://127.0.0.1:1",
		"nats://user:pass%40word@127.0.0.1:1,127.0.0.1:1/bucket?replicas=3&storage=memory&create=false&push=false",
		"nats://token@127.0.0.1:1?domain=hub&inbox=_INBOX_app&retention=48h",
		"nats://127.0.0.1:1?tls=true&server_name=n1&skip_verify=true",
		"nats://127.0.0.1:1?nkey=" + seed,
		"nats+tls://127.0.0.1:1",
	} {
		_, err := natslock.Open(ctx, url)
		if e, ok := errors.AsType[*driver.Error](err); !ok || e.Hint == "" || !errors.Is(err, nats.ErrNoServers) {
			t.Errorf("%s: %v; want ErrNoServers", url, err)
		}
	}
}

// If Open cannot connect, its error has a hint.
func TestAFailedConnectionHasAHint(t *testing.T) {
	t.Parallel()
	server, closed := natstest.Start(t, ""), natstest.Start(t, users)
	silent, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	noError(t, err)
	defer silent.Close()
	for url, want := range map[string]string{
		"nats+tls://" + server.Addr:           "begin the URL with nats",
		"nats://" + server.Addr + "?tls=true": "leave out tls=true",
		"nats://joe:hunter2@nohost.invalid":   "not known",
		"nats://" + silent.Addr().String():    "handshake_first",
		"nats://hunter2@127.0.0.1:1":          "check the server and the network",
		"nats://joe:hunter2@" + closed.Addr:   "",
		"nats://hunter2@" + closed.Addr:       "",
	} {
		until(t, url, func() error { // a slow server does not answer in time
			_, err := natslock.Open(ctx, url)
			checkNoPassword(t, err)
			if e, ok := errors.AsType[*driver.Error](err); !ok || !strings.Contains(e.Hint, want) {
				return fmt.Errorf("%w; want the hint %q", err, want)
			}
			return nil
		})
	}
}

func TestOpeningEndsWithItsContext(t *testing.T) {
	t.Parallel()
	within, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	silent, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	noError(t, err)
	defer silent.Close()
	_, err = natslock.Open(within, "nats://"+silent.Addr().String())
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v; want DeadlineExceeded", err)
	}
}

func TestOptionsThatAreRefused(t *testing.T) {
	t.Parallel()
	if _, err := natslock.New(&nats.Conn{}, &natslock.Options{Replicas: -1}); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("-1 replicas: %v; want ErrInvalid", err)
	}
	if _, err := natslock.New(nil, nil); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("New(nil): %v; want ErrInvalid", err)
	}
}
