package engine

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/driver"
)

func TestParametersOfTLSAreRead(t *testing.T) {
	if c, err := TLSConfig(url.Values{"retention": {"1h"}}, "test URL"); c != nil || err != nil {
		t.Errorf("without any: %v, %v", c, err)
	}
	c, err := TLSConfig(url.Values{"server_name": {"a"}, "skip_verify": {""}}, "test URL")
	if err != nil || c.ServerName != "a" || !c.InsecureSkipVerify || c.MinVersion == 0 {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := TLSConfig(url.Values{"skip_verify": {"false"}}, "test URL"); err != nil || c == nil || c.InsecureSkipVerify {
		t.Errorf("skip_verify=false: %+v, %v", c, err)
	}
}

func TestParametersOfTLSThatAreRefused(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for raw, want := range map[string]string{
		"skip_verify=s3cret":                            "skip_verify",
		"ca_cert=/nowhere":                              "/nowhere",
		"ca_cert=" + empty:                              "no certificate",
		"client_cert=a":                                 "without client_key",
		"client_key=a":                                  "without client_key",
		"client_cert=/nowhere&client_key=/nowhere":      "/nowhere",
		"client_cert=" + empty + "&client_key=" + empty: "no certificate and its key",
	} {
		query, err := url.ParseQuery(raw)
		if err != nil {
			t.Fatal(err)
		}
		_, err = TLSConfig(query, "test URL")
		invalid, ok := errors.AsType[*driver.InvalidError](err)
		if !ok || !strings.Contains(err.Error(), want) || invalid.Allowed == "" || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v; want %q", raw, err, want)
		}
	}
}
