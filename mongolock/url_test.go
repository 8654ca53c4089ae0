package mongolock

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/driver"
)

func TestURLsAreRead(t *testing.T) {
	for raw, want := range map[string]string{
		"mongodb://h":                                  "h/pawl pawl 24h0m0s",
		"mongodb://h:27018/app":                        "h:27018/app pawl 24h0m0s",
		"mongodb://a,b:2/app?replicaSet=rs0":           "a,b:2/app pawl 24h0m0s",
		"mongodb://joe:p%40ss@h/app?authSource=admin":  "h/app pawl 24h0m0s",
		"mongodb://h/app?collection=locks":             "h/app locks 24h0m0s",
		"mongodb://h?retention=1h&push=false":          "h/pawl pawl 1h0m0s silent",
		"mongodb://h/?retryWrites=true&w=majority":     "h/pawl pawl 24h0m0s",
		"mongodb://h/?RETRYWRITES=true&Collection=a.b": "h/pawl a.b 24h0m0s",
		"mongodb://h/?readPreference=secondary&tls":    "",
	} {
		u, err := driver.ParseURL(raw)
		noError(t, err)
		p, err := parseURL(u)
		if err != nil {
			if want != "" {
				t.Errorf("%s: %v", raw, err)
			}
			continue
		}
		o, err := p.options.withDefaults()
		got := fmt.Sprintf("%s/%s %s %v", o.Location, p.database, o.Collection, o.Retention)
		if o.NoPush {
			got += " silent"
		}
		if err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", raw, got, err, want)
		}
	}
}

func TestBadURLsAreRefused(t *testing.T) {
	for _, raw := range []string{
		"mongodb:h", "mongodb:///app", "mongodb://h/a/b", "mongodb://h/a$b", "mongodb://h/app#x",
		"mongodb://h/?unknown=1", "mongodb://h/?collection=$x", "mongodb://h/?collection=", "mongodb://h/?retention=0",
		"mongodb://h/?retention=1s", "mongodb://h/?push=perhaps", "mongodb://h/?maxPoolSize=many",
		"mongodb://joe:sesame@h/?maxPoolSize=sesame", "mongodb://h:99999", "mongodb://joe:se/same@h", "mongodb://h/app?authSource=a&authSource=b",
		"mongodb://joe:sesame@h/?authMechanism=MONGODB-X509", "mongodb://h/?tlsCertificateKeyFilePassword=sesame&tls=perhaps",
		"mongodb://h/?authMechanismProperties=sesame",
	} {
		d, err := asDriver(Open(ctx, raw))
		invalid, ok := errors.AsType[*driver.InvalidError](err)
		if !ok || d != nil {
			t.Errorf("%s: %v; want an InvalidError", raw, err)
			continue
		}
		if text := invalid.Error(); strings.Contains(text, "sesame") {
			t.Errorf("%s: the error has the password: %s", raw, text)
		}
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	if _, err := New(nil, nil); !isInvalid(err) {
		t.Errorf("no database: %v", err)
	}
	for _, o := range []Options{{Collection: "a$b"}, {Collection: "system.x"}, {Retention: 1}} {
		if _, err := o.withDefaults(); !isInvalid(err) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func isInvalid(err error) bool {
	_, ok := errors.AsType[*driver.InvalidError](err)
	return ok
}
