package driver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawl-go/pawl/driver"
)

// newScheme returns an unused scheme. A test's scheme stays registered in the process,
// even when the test runs again.
func newScheme() string { return fmt.Sprintf("test-%d", schemes.Add(1)) }

var schemes atomic.Int64

func TestOpenPassesTheURLToTheBackendOfItsScheme(t *testing.T) {
	var got *url.URL
	scheme := newScheme()
	driver.Register(scheme, func(_ context.Context, u *url.URL) (driver.Driver, error) {
		got = u
		return nil, io.EOF
	})
	_, err := driver.Open(t.Context(), strings.ToUpper(scheme)+"://user:pw@host:1/db?x=y") // schemes have no case
	if !errors.Is(err, io.EOF) {
		t.Fatalf("error %v, want the backend's own", err)
	}
	if pw, _ := got.User.Password(); pw != "pw" || got.Host != "host:1" || got.Query().Get("x") != "y" {
		t.Errorf("the backend got %v, want the whole URL", got.Redacted())
	}
}

func TestOpenRefusesUnregisteredSchemes(t *testing.T) {
	known := newScheme()
	driver.Register(known, nil)
	for raw, says := range map[string]string{
		"":                   "has no scheme",
		"/var/lib/pawl.db":   "has no scheme",
		"localhost":          "has no scheme",
		"nosuch://localhost": `the scheme "nosuch", which no imported backend registered`,
	} {
		_, err := driver.Open(t.Context(), raw)
		wantInvalid(t, err, "URL")
		if s := fmt.Sprint(err); !strings.Contains(s, says) || !strings.Contains(s, known) {
			t.Errorf("%q is refused with %s; want %q, and the registered schemes", raw, s, says)
		}
	}
}

// No message repeats the password, wherever in an invalid URL it is.
func TestOpenNeverShowsAPassword(t *testing.T) {
	for _, raw := range []string{
		"nosuch://user:hunter2@host/db",
		"nosuch:user:hunter2@host",
		"://user:hunter2@host",
		"redis://user:hunter2@host:port/0",
		"redis://user:hunter2%zz@host",
		"redis://user:%zzhunter2@host",
		"redis://user:hunter2@host\x7f",
		"redis://user:hunter2@ho st",
		"redis://user:hunter2@[::1",
		"redis://:hunter2",             // the host is missing,
		"redis://localhost:hunter2",    // the password is in the place of the port,
		"redis://:hunter2%40host:6379", // or the @ is encoded
		"postgres://host/db?password=hunter2&x=%zz\n",
		"root:hunter2@tcp(localhost:3306)/db", // a DSN of go-sql-driver
		"host=x password=hunter2",             // a DSN of libpq
		"host=x password=a:hunter2",
		"%zzhunter2:",
		"hunter2@host:6379",    // the scheme and the user are missing
		"hunter2:pw@host:6379", // only the scheme is missing
		"hunter2:pw?x@host/y",
		"redis://user:hunter2#x@host",
	} {
		_, err := driver.Open(t.Context(), raw)
		wantInvalid(t, err, "URL")
		if s := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(s, "hunter2") {
			t.Errorf("the error of %q shows the password: %s", raw, s)
		}
	}
}

// An import would not help with the URL of another database, or a misspelled scheme.
func TestTheErrorOfAKnownSchemeNamesItsImport(t *testing.T) {
	known := newScheme()
	driver.Register(known, nil)
	for raw, want := range map[string]string{
		"rediss://x": "redislock", "valkey://x": "redislock", "redlock://x": "redislock/redlock", "sqlite://x": "sqlitelock",
		"cassandra://x": "", "sqllite:/x": "",
	} {
		_, err := driver.Open(t.Context(), raw)
		if s := fmt.Sprint(err); want != "" && !strings.Contains(s, `import _ "github.com/pawl-go/pawl/`+want+`"`) {
			t.Errorf("%s: is refused with %s; want the import of %s", raw, s, want)
		} else if want == "" && (strings.Contains(s, "import _") || !strings.Contains(s, known)) {
			t.Errorf("%s: is refused with %s; want the registered schemes", raw, s)
		}
	}
}

// A password that url.Parse cannot read must be percent-encoded.
func TestTheErrorOfAnUnparsablePasswordSaysHowToEncodeIt(t *testing.T) {
	for _, raw := range []string{"redis://user:p%zz@host", "redis://user:p ss@host", "redis://user:p/ss@host:x", "redis://user:pw#x@host"} {
		_, err := driver.Open(t.Context(), raw)
		wantInvalid(t, err, "URL")
		if s := fmt.Sprint(err); !strings.Contains(s, "password and parameters percent-encoded: %40 for @") {
			t.Errorf("%q is refused with %s; want the advice to encode it", raw, s)
		}
	}
}

func TestRegisteringASchemeTwicePanics(t *testing.T) {
	scheme := newScheme()
	driver.Register(scheme, nil)
	defer func() {
		if s := fmt.Sprint(recover()); !strings.Contains(s, scheme) {
			t.Errorf("the panic is %s, without the scheme", s)
		}
	}()
	driver.Register(scheme, nil)
}
