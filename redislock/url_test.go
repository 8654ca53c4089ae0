package redislock

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/driver"
)

func TestURLs(t *testing.T) {
	for raw, want := range map[string]string{
		// One server.
		"redis://localhost:6380":           "localhost:6380",
		"redis://localhost":                "localhost:6379",
		"redis://localhost/":               "localhost:6379",
		"redis://":                         "localhost:6379",
		"redis://:6380":                    "localhost:6380",
		"redis://[::1]:6380":               "[::1]:6380",
		"redis://[::1]":                    "[::1]:6379",
		"valkey://10.0.0.1":                "10.0.0.1:6379",
		"redis://h/3":                      "h:6379 db=3",
		"redis://h?db=3":                   "h:6379 db=3",
		"redis://h/3?db=3":                 "h:6379 db=3",
		"redis://h?protocol=3":             "h:6379",
		"redis://joe:sesame@h":             "h:6379 user=joe password=sesame",
		"redis://:sesame@h":                "h:6379 password=sesame",
		"redis://joe:p%40ss%2Fw%3Ard@h":    "h:6379 user=joe password=p@ss/w:rd",
		"redis://h?cluster=false":          "h:6379 single",
		"redis://h?cluster=true":           "h:6379",
		"redis://h?protocol=2":             "h:6379 resp2 untracked",
		"redis://h?protocol=2&tracking":    "h:6379 resp2 untracked",
		"redis://h?tracking=false":         "h:6379 untracked",
		"redis://h?push=false":             "h:6379 silent",
		"redis://h?client_name=billing":    "h:6379 name=billing",
		"redis://h?prefix=locks/":          "h:6379 prefix=locks/",
		"redis://h?retention=48h":          "h:6379 retention=48h0m0s",
		"redis://h?dial_timeout=2s":        "h:6379 dial=2s",
		"redis://h?dial_timeout=2":         "h:6379 dial=2s", // as go-redis takes it
		"redis://h?write_timeout=250ms":    "h:6379 write=250ms",
		"redis+unix:///run/redis.sock":     "/run/redis.sock unix",
		"redis+unix:///r.sock?db=2":        "/r.sock db=2 unix",
		"redis+unix://joe:s@/run/r.sock":   "/run/r.sock user=joe password=s unix",
		"redis://h?client_name=a&prefix=b": "h:6379 name=a prefix=b",

		// TLS.
		"rediss://example.com":               "example.com:6379 tls=",
		"valkeys://example.com:7000":         "example.com:7000 tls=",
		"rediss://h?server_name=other":       "h:6379 tls=other",
		"rediss://h?skip_verify=true":        "h:6379 tls= unverified",
		"rediss://h?skip_verify=false":       "h:6379 tls=",
		"rediss://h?ca_cert=" + ca(t, true):  "h:6379 tls= ca",
		"rediss://[::1]:6380":                "[::1]:6380 tls=",
		"rediss://a,b":                       "a:6379,b:6379 tls=",
		"rediss://a,b?master_set=main":       "a:26379,b:26379 master=main tls=",
		"rediss://a?master_set=main&db=1":    "a:26379 db=1 master=main tls=",
		"rediss://a,b?server_name=c.example": "a:6379,b:6379 tls=c.example",

		// A cluster.
		"redis://a,b:7001,c:7002":            "a:6379,b:7001,c:7002",
		"redis://a?addr=b:7001&addr=c":       "a:6379,b:7001,c:6379",
		"redis://joe:s@a,b":                  "a:6379,b:6379 user=joe password=s",
		"redis://a?addr=[::2]:7001&addr=::3": "a:6379,[::2]:7001,[::3]:6379",

		// Sentinels.
		"redis://a,b:7/2?master_set=main": "a:26379,b:7 db=2 master=main",
		"redis://a?master_name=main":      "a:26379 master=main",
		"redis://joe:s@a?master_set=main&sentinel_username=sam&sentinel_password=watch": "a:26379 user=joe password=s master=main sentinel=sam:watch",
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		p, err := parseURL(u)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if got := p.describe(); got != want {
			t.Errorf("%s is\n\t%s\nwant\n\t%s", raw, got, want)
		}
		for _, secret := range []string{p.client.Password, p.client.Sentinel.Password} {
			if len(secret) > 1 && strings.Contains(p.location, secret) {
				t.Errorf("%s: the location in errors would be %q", raw, p.location)
			}
		}
	}
}

// describe lists the settings that are not the defaults.
func (p *parsedURL) describe() string {
	b, o, d := &strings.Builder{}, p.client, settings()
	b.WriteString(strings.Join(o.InitAddress, ","))
	add := func(differs bool, format string, args ...any) {
		if differs {
			fmt.Fprintf(b, " "+format, args...)
		}
	}
	add(o.Username != "", "user=%s", o.Username)
	add(o.Password != "", "password=%s", o.Password)
	add(o.SelectDB != 0, "db=%d", o.SelectDB)
	add(o.Sentinel.MasterSet != "", "master=%s", o.Sentinel.MasterSet)
	add(o.Sentinel.Username+o.Sentinel.Password != "", "sentinel=%s:%s", o.Sentinel.Username, o.Sentinel.Password)
	add(p.network == "unix", "unix")
	if o.TLSConfig != nil {
		add(true, "tls=%s", o.TLSConfig.ServerName)
		add(o.TLSConfig.InsecureSkipVerify, "unverified")
		add(o.TLSConfig.RootCAs != nil, "ca")
		add(o.TLSConfig.MinVersion != tls.VersionTLS12, "version=%d", o.TLSConfig.MinVersion)
		add(o.Sentinel.TLSConfig != o.TLSConfig, "other TLS for the Sentinels")
	}
	add(o.ForceSingleClient, "single")
	add(o.AlwaysRESP2, "resp2")
	add(p.untrackedReason != "", "untracked")
	add(p.options.NoPush, "silent")
	add(o.ClientName != d.ClientName, "name=%s", o.ClientName)
	add(p.options.Prefix != "", "prefix=%s", p.options.Prefix)
	add(p.options.Retention != 0, "retention=%v", p.options.Retention)
	add(o.Dialer.Timeout != d.Dialer.Timeout, "dial=%v", o.Dialer.Timeout)
	add(o.ConnWriteTimeout != d.ConnWriteTimeout, "write=%v", o.ConnWriteTimeout)
	return b.String()
}

// The error about a wrong URL does not contain the URL, because that has a password.
func TestWrongURLs(t *testing.T) {
	for raw, problem := range map[string]string{
		"redis:hunter2@h":                              "no //",
		"redis://u:hunter2@h#x":                        "#",
		"redis://u:hunter2@h/x":                        "database",
		"redis://u:hunter2@h/-1":                       "database",
		"redis://u:hunter2@h/1/2":                      "database",
		"redis://u:hunter2@h?db=hunter2":               "database",
		"redis://u:hunter2@a,b/1":                      "no databases",
		"redis://u:hunter2@h?pool=hunter2":             `"pool"; allowed: addr, ca_cert, client_cert, `,
		"redis://u:123?hunter2@h":                      "has an @ after its host; allowed: user, password and parameters percent-encoded",
		"redis://u:123/hunter2@h":                      "percent-encoded",
		"redis://hunter2:123#@h":                       "percent-encoded",
		"redis://hunter2:123?client_name=@h":           "percent-encoded",
		"redis://u:hunter2%zz@h":                       "percent-encoded",
		"redis://u:hunt er2@h":                         "percent-encoded",
		"redis+unix://u:hunter2@/r.sock?hunter2@":      "an unknown parameter; allowed: ",
		"redis://u:hunter2@h?db=1&db=2":                "twice",
		"redis://u:hunter2@h/1?db=2":                   "two databases",
		"redis://u:hunter2@h/0?db=2":                   "two databases",
		"redis://u:hunter2@h?protocol=7":               "protocol that is neither 2 nor 3",
		"redis://u:hunter2@h?a=%zz":                    "parameters",
		"redis://u:hunter2@h?dial_timeout=hunter2":     "dial_timeout",
		"redis://u:hunter2@h?dial_timeout=0":           "dial_timeout",
		"redis://u:hunter2@h?write_timeout=-1s":        "write_timeout",
		"redis://u:hunter2@h?retention=long":           "retention",
		"redis://u:hunter2@h?cluster=perhaps":          "cluster",
		"redis://u:hunter2@h?push=hunter2":             "push",
		"redis://u:hunter2@h?tracking=2":               "tracking",
		"redis://u:hunter2@h?skip_verify=true":         "rediss",
		"redis://u:hunter2@h?server_name=x":            "rediss",
		"redis://u:hunter2@h?ca_cert=" + ca(t, true):   "rediss",
		"rediss://u:hunter2@h?ca_cert=" + ca(t, false): "no certificate",
		"rediss://u:hunter2@h?ca_cert=/nowhere":        "/nowhere",
		"rediss://u:hunter2@h?skip_verify=x":           "skip_verify",
		"redis+unix://u:hunter2@h":                     "socket",
		"redis+unix://u:hunter2@h/r.sock":              "socket",
		"redis://u:hunter2@h:port":                     "cannot be parsed",
		// Go requires a port of the last host if any host has one
		"redis://u:hunter2@h:65536":                              "port",
		"redis://u:hunter2@h:0":                                  "port",
		"redis://u:hunter2@h?addr=g:redis":                       "has a port that is not 1 to 65535",
		"redis://u:hunter2@h/%zz":                                "cannot be parsed",
		"redis://u:hunter2@h:6379?sentinel_password=hunter2&x=1": "behind sentinel_password",
		"redis://u:hunter2@h?prefix=a{b":                         "brace",
		"redis://u:hunter2@h?retention=1s":                       "retention",
		"redis://u:hunter2@h?wait_replicas=x":                    "wait_replicas",
		"redis://u:hunter2@h?wait_replicas=-1":                   "wait_replicas",
		"redis://u:hunter2@h?wait_replicas=101":                  "replicas to wait for are 101",
		"redis://u:hunter2@h?wait_timeout=0":                     "wait_timeout",
		"redis://u:hunter2@h?wait_timeout=1us":                   "time to wait for replicas",
		"redis://u:hunter2@h?wait_timeout=1h":                    "time to wait for replicas",
	} {
		_, err := Open(context.Background(), raw)
		invalid, ok := errors.AsType[*driver.InvalidError](err)
		if !ok || !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%s: %v; want a *driver.InvalidError", raw, err)
			continue
		}
		text := fmt.Sprintf("%v %+v %#v", err, err, err)
		if !strings.Contains(text, problem) || invalid.Allowed == "" {
			t.Errorf("%s: %v; want an error about %q, and what is allowed", raw, err, problem)
		}
		if strings.Contains(text, "hunter2") {
			t.Errorf("%s: the error has the password: %s", raw, text)
		}
	}
}

// ca returns a file with a certificate, or with other text.
func ca(t *testing.T, valid bool) string {
	t.Helper()
	text := []byte("no certificate")
	if valid {
		server := httptest.NewTLSServer(nil)
		text = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		server.Close()
	}
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
