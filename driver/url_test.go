package driver_test

import (
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/driver"
)

var knownParameters = []string{"retention", "poll", "addr"}

func readURL(t *testing.T, raw string) (url.Values, error) {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return driver.URLParameters(u, "test URL", knownParameters, "addr")
}

func TestTheParametersOfAURLAreRead(t *testing.T) {
	for raw, want := range map[string]url.Values{
		"x://user:pw@host":                       {},
		"x:/home/me@work/locks.db?poll=1":        {"poll": {"1"}}, // no host follows this @
		"x:///home/me@work/locks.db?poll=a@b":    {"poll": {"a@b"}},
		"x:me@work/locks.db":                     {},
		"x://host/a%40b?addr=a&poll=%40&addr=b#": {"addr": {"a", "b"}, "poll": {"@"}},
	} {
		if got, err := readURL(t, raw); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v; want %v", raw, got, err, want)
		}
	}
}

func TestTheErrorOfAnUnknownParameterListsTheAllowedOnes(t *testing.T) {
	for raw, want := range map[string]string{
		"x://host?pol=1":              `pawl: test URL has the unknown parameter "pol"; allowed: addr, poll, retention`,
		"x://host?\x1b=1":             `pawl: test URL has the unknown parameter "\x1b"; allowed: addr, poll, retention`,
		"x://host?poll=pw&s3cret":     `pawl: test URL has an unknown parameter behind poll; allowed: addr, poll, retention; %26 for an & in a value`,
		"x://host?&pol&s3cret=1":      `pawl: test URL has the unknown parameter "pol"; allowed: addr, poll, retention`,
		"x://host?poll=1&a&addr=2&s=": `pawl: test URL has an unknown parameter behind poll; allowed: addr, poll, retention; %26 for an & in a value`,
		"x://host?poll=1&poll=2":      `pawl: test URL has the parameter poll twice; allowed: once`,
		"x:/path?s3cret@host":         `pawl: test URL has an unknown parameter; allowed: addr, poll, retention`,
		"x://host?poll=%zz":           `pawl: test URL has parameters that cannot be read; allowed: NAME=VALUE&NAME=VALUE, percent-encoded`,
	} {
		raw = strings.ReplaceAll(raw, "\x1b", "%1b")
		if _, err := readURL(t, raw); err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", raw, err, want)
		}
	}
}

// url.Parse ends the host at a /, ? or # in the password. The error quotes no text before
// the @, and says how to encode it.
func TestAnErrorQuotesNoTextBeforeAnAt(t *testing.T) {
	for _, raw := range []string{
		"x://user:12?s3cret@host",
		"x://user:12?s3cret&poll=1@host",
		"x://user:12/s3cret@host",
		"x://user:12#s3cret@host",
		"x://user:12@s3cret/1@host",
		"x://s3cret?poll=1@host",
		"x://s3cret/?poll=1@host",
	} {
		_, err := readURL(t, raw)
		wantInvalid(t, err, "test URL")
		if s := fmt.Sprint(err); strings.Contains(s, "s3cret") || strings.Contains(s, "12") || !strings.Contains(s, "percent-encoded") {
			t.Errorf("%s is refused with %v, want the advice, and no text before the @", raw, err)
		}
	}
}

// url.Parse takes the second port for a part of the first one.
func TestEachOfSeveralHostsMayHaveAPort(t *testing.T) {
	for _, hosts := range []string{
		"one:1,two:2", "one:1,two", "one,two:2", "one,two", "one:1,two:2,three", "[::1]:1,[::2]:2", "[::1],two:2", "one:1,[::2]",
	} {
		for _, user := range []string{"", "user:p%40ss,word@"} {
			u, err := driver.ParseURL("x://" + user + hosts + "/path?a=b,c#d")
			if err != nil || u.Host != hosts || u.Path != "/path" || u.RawQuery != "a=b,c" || u.Fragment != "d" {
				t.Errorf("%s%s: %+v, %v", user, hosts, u, err)
			} else if password, _ := u.User.Password(); user != "" && password != "p@ss,word" {
				t.Errorf("%s%s: the password is %q", user, hosts, password)
			}
		}
	}
	for _, raw := range []string{"x://one:x", "x://one:1,two:x", "x://one:1,two:2:3,four", "x://user:secret,a/b@host", "x://one:1,,two", "x://one:1,two/%zz"} {
		if u, err := driver.ParseURL(raw); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, %v; want it refused", raw, u, err)
		}
	}
}

// The last part of such an address may be meant as a port, but would not be read as one.
func TestAnIPv6AddressWithoutBracketsIsRefused(t *testing.T) {
	for rest, refused := range map[string]bool{
		"//::1:7717": true, "//::1": true, "//joe:pw@::1:7717/2": true, "//a,fe80::1:6379": true, "//jo%40e:pw@::1:1": true,
		"//[::1]:7717": false, "//[::1]": false, "//host:7717": false, "//joe:p:w@host:1/x": false, "//a:1,b:2,c:3": false,
		"//10.0.0.7:6379": false, "/var/a:b:c": false, "": false, "//": false,
	} {
		_, err := driver.ParseURL("redis:" + rest)
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "without brackets; allowed: redis://[ADDRESS]:PORT") {
			t.Errorf("%s: %v; want it refused: %v", rest, err, refused)
		}
	}
}

// If a TLS parameter has its name in another library, the error gives our name.
func TestTheErrorOfATLSParameterGivesPawlsName(t *testing.T) {
	own := []string{"ca_cert", "client_cert", "client_key", "server_name", "skip_verify", "poll"}
	for raw, want := range map[string]string{
		"?tls_ca=s3cret":        "ca_cert",
		"?poll=1&cert=s3cret":   "client_cert",
		"?sslkey=s3cret":        "client_key",
		"?sni=s3cret":           "server_name",
		"?tlsInsecure=s3cret":   "skip_verify",
		"?sslmode=s3cret&key=a": "skip_verify",
	} {
		u, err := url.Parse("x://host" + raw)
		if err != nil {
			t.Fatal(err)
		}
		_, err = driver.URLParameters(u, "test URL", own)
		if want = "pawl: test URL has a TLS parameter under an unknown name; allowed: " + want; err == nil || err.Error() != want {
			t.Errorf("%s: %v; want %s", raw, err, want)
		}
	}
	u, _ := url.Parse("x://host?ca_cert=a")
	if _, err := driver.URLParameters(u, "test URL", []string{"sslrootcert"}); err == nil || !strings.HasSuffix(err.Error(), "allowed: sslrootcert") {
		t.Errorf("%v; want the name sslrootcert in it", err)
	}
}
