package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

func TestURLs(t *testing.T) {
	for raw, want := range map[string]string{
		"etcd://h":                             "http://h:2379",
		"etcd://":                              "http://localhost:2379",
		"etcd://h:2380/":                       "http://h:2380",
		"etcd://[::1]":                         "http://[::1]:2379",
		"etcd://h:":                            "http://h:2379",
		"etcd://a:,b:1":                        "http://a:2379 http://b:1",
		"etcd://a,b:1,c:2":                     "http://a:2379 http://b:1 http://c:2",
		"etcd://h/app":                         "http://h:2379 prefix=app",
		"etcd://h/app/locks/":                  "http://h:2379 prefix=app/locks",
		"etcd://joe:p%40ss%2F@h":               "http://h:2379 joe:p@ss/",
		"etcd://h?retention=48h":               "http://h:2379 retention=48h0m0s",
		"etcd://h?dial_timeout=1s":             "http://h:2379 dial=1s",
		"etcds://h":                            "https://h:2379 tls",
		"etcds://h?server_name=x&skip_verify":  "https://h:2379 tls=x unverified",
		"etcds://h?server_name=x":              "https://h:2379 tls=x",
		"etcds://h?skip_verify=false":          "https://h:2379 tls",
		"etcd://h?":                            "http://h:2379",
		"etcd://joe:s@a,b/p?retention=720h":    "http://a:2379 http://b:2379 joe:s prefix=p retention=720h0m0s",
		"etcd://h/%C3%BC":                      "http://h:2379 prefix=ü",
		"etcds://joe:s@h:1/p?skip_verify=true": "https://h:1 joe:s prefix=p tls unverified",
	} {
		u, err := driver.ParseURL(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if got, err := describe(u); err != nil || got != want {
			t.Errorf("%s is %s (%v), want %s", raw, got, err, want)
		}
	}
}

// describe lists the settings of a URL that are not the defaults.
func describe(u *url.URL) (string, error) {
	p, err := parseURL(u)
	if err != nil {
		return "", err
	}
	c, o, b := &p.config, &p.options, &strings.Builder{}
	b.WriteString(strings.Join(c.Endpoints, " "))
	add := func(differs bool, format string, args ...any) {
		if differs {
			fmt.Fprintf(b, " "+format, args...)
		}
	}
	add(c.Username != "", "%s:%s", c.Username, c.Password)
	add(o.Prefix != defaultPrefix, "prefix=%s", o.Prefix)
	add(o.Retention != 24*time.Hour, "retention=%v", o.Retention)
	add(c.DialTimeout != settings().DialTimeout, "dial=%v", c.DialTimeout)
	if c.TLS != nil {
		add(c.TLS.ServerName == "", "tls")
		add(c.TLS.ServerName != "", "tls=%s", c.TLS.ServerName)
		add(c.TLS.InsecureSkipVerify && c.TLS.VerifyConnection == nil, "unverified")
	}
	return b.String(), nil
}

func TestURLsThatAreRefused(t *testing.T) {
	for _, raw := range []string{
		"etcd:h", "etcd://h#x", "etcd://h:0", "etcd://h:99999", "etcd://h:x,b:1", "etcd://joe@h", "etcd://:hunter2@h",
		"etcd://h?nonsense=1", "etcd://h?retention=soon", "etcd://h?retention=1s", "etcd://h?retention=24h&retention=25h",
		"etcd://h/a//b", "etcd://joe:hunter2/@h", "etcd://joe:hunter2@h/a@b",
		"etcd://h?ca_cert=x.pem", "etcd://h?skip_verify", "etcds://h?ca_cert=/nowhere.pem", "etcds://h?client_cert=/nowhere.pem&client_key=/nowhere.key",
		"etcds://h?client_cert=/nowhere.pem", "etcds://h?skip_verify=perhaps", "etcd://h/" + strings.Repeat("a", 257),
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err := Open(ctx, raw)
		cancel()
		if !errors.Is(err, driver.ErrInvalid) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%.60s: %v; want ErrInvalid, and no password", raw, err)
		}
	}
	if _, err := New(nil, nil); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("New(nil): %v; want ErrInvalid", err)
	}
}
