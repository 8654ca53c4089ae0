package sqlitelock

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

func TestURLs(t *testing.T) {
	for rawURL, want := range map[string]string{
		"sqlite:/var/lib/locks.db":           "/var/lib/locks.db",
		"sqlite:///var/lib/locks.db":         "/var/lib/locks.db",
		"sqlite:locks.db":                    "locks.db",
		"sqlite:./a/locks.db":                "./a/locks.db",
		"sqlite:../locks.db":                 "../locks.db",
		"sqlite:/a%3Fb%23c%25d":              "/a?b#c%d",
		"sqlite:a%3Fb%23c%25d":               "a?b#c%d",
		"sqlite:/locks.db?retention=1h":      "/locks.db",
		"sqlite:l.db?poll=10ms&retention=2h": "l.db",
	} {
		u, err := url.Parse(rawURL)
		noError(t, err)
		if path, _, err := parseURL(u); err != nil || path != want {
			t.Errorf("%s has the path %q, %v; want %q", rawURL, path, err, want)
		}
	}
	u, _ := url.Parse("sqlite:l.db?poll=10ms&retention=2h")
	if _, o, err := parseURL(u); err != nil || o.Poll != 10*time.Millisecond || o.Retention != 2*time.Hour {
		t.Errorf("%+v, %v; want poll 10ms and retention 2h", o, err)
	}
}

func TestURLsWithUnknownPartsAreRefused(t *testing.T) {
	for _, raw := range []string{
		"sqlite:", "sqlite://", "sqlite:///?poll=4ms&poll=5ms", "sqlite://locks.db", "sqlite://host/locks.db", "sqlite://user:secret@/locks.db",
		"sqlite:/locks.db?mode=ro", "sqlite:/locks.db?Poll=4ms", "sqlite:/locks.db?poll=", "sqlite:/locks.db?poll=fast", "sqlite:/locks.db?poll=0",
		"sqlite:/locks.db?poll=1h", "sqlite:/locks.db?create=", "sqlite:/locks.db?create=maybe",
		"sqlite:/locks.db?retention=-1h", "sqlite:/locks.db#part", "sqlite:/locks.db?a;b",
	} {
		if d, err := driver.Open(ctx, raw); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%s: %v, %v; want ErrInvalid", raw, d, err)
		}
	}
}

func TestPropertiesNameTheFile(t *testing.T) {
	path := newPath(t)
	if got := open(t, path, nil).Properties().Location; got != "sqlite "+path {
		t.Errorf("Location is %q, want %q", got, "sqlite "+path)
	}
}

func TestErrorsOfParametersNameTheAllowedValues(t *testing.T) {
	for raw, want := range map[string]string{
		"sqlite:l.db?create=no":    "create that cannot be read; allowed: true, false",
		"sqlite:l.db?poll=fast":    "poll that cannot be read; allowed: a duration, like 10ms",
		"sqlite:l.db?retention=1x": "retention that cannot be read; allowed: a duration, like 24h",
	} {
		if _, err := driver.Open(ctx, raw); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v; want %s", raw, err, want)
		}
	}
}

func TestAURLOpensTheFile(t *testing.T) {
	path := newPath(t)
	d, err := driver.Open(ctx, (&url.URL{Scheme: "sqlite", Path: filepath.ToSlash(path)}).String())
	noError(t, err)
	defer d.Close()
	gets(t, d, mutex("job"))
	isRefused(t, open(t, path, nil), mutex("job"))
	if d, err := driver.Open(ctx, "sqlite:"+filepath.ToSlash(t.TempDir())); err == nil || d != nil {
		t.Fatalf("opening a folder: %v, %v; want an error", d, err)
	}
}

// A typo must not make a program that only reads create an empty file, in which all locks
// are free.
func TestAFileThatMustExistIsNotMade(t *testing.T) {
	folder := t.TempDir()
	missing, empty := filepath.Join(folder, "a", "locks.db"), filepath.Join(folder, "empty.db")
	noError(t, os.WriteFile(empty, nil, 0o600))
	for _, path := range []string{missing, empty} {
		d, err := driver.Open(ctx, "sqlite:"+filepath.ToSlash(path)+"?create=false")
		if !errors.Is(err, fs.ErrNotExist) || !errors.Is(err, driver.ErrUnavailable) || d != nil {
			t.Errorf("%s: %v, %v; want fs.ErrNotExist", path, d, err)
		}
	}
	if _, err := os.Stat(filepath.Dir(missing)); err == nil {
		t.Error("the folder was created")
	}
	if info, err := os.Stat(empty); err != nil || info.Size() > 0 {
		t.Errorf("the empty file has changed: %v, %v", info, err)
	}
	gets(t, open(t, empty, nil), mutex("job"))
	d := open(t, empty, &Options{MustExist: true})
	isRefused(t, d, mutex("job"))
}
