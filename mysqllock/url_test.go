package mysqllock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

func TestURLsAreRead(t *testing.T) {
	for raw, want := range map[string]struct{ user, password, net, addr, db string }{
		"mysql://app:secret@db.example:3307/shop":                   {"app", "secret", "tcp", "db.example:3307", "shop"},
		"mariadb://app:secret@db.example/shop":                      {"app", "secret", "tcp", "db.example:3306", "shop"},
		"mysql://app:s%40%2F%3A%3F@[::1]:3306/shop?tls=true":        {"app", "s@/:?", "tcp", "[::1]:3306", "shop"},
		"mysql:///shop?socket=/run/mysqld/mysqld.sock":              {"", "", "unix", "/run/mysqld/mysqld.sock", "shop"},
		"mysql:app:s@/:?@tcp(db.example:3307)/shop?tls=skip-verify": {"app", "s@/:?", "tcp", "db.example:3307", "shop"},
		"app:secret@tcp(db.example:3306)/shop?parseTime=true":       {"app", "secret", "tcp", "db.example:3306", "shop"},
		"mysql://app:secret@tcp(db.example:3306)/shop":              {"app", "secret", "tcp", "db.example:3306", "shop"},
		"app@unix(/tmp/mysql.sock)/shop":                            {"app", "", "unix", "/tmp/mysql.sock", "shop"},
	} {
		p, err := parse(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if c := p.config; c.User != want.user || c.Passwd != want.password || c.Net != want.net || c.Addr != want.addr || c.DBName != want.db {
			t.Errorf("%s: %q %q %q %q %q, want %q", raw, c.User, c.Passwd, c.Net, c.Addr, c.DBName, want)
		}
	}
}

func TestParametersOfURLsAndDSNsAreRead(t *testing.T) {
	for _, raw := range []string{
		"mysql://app@db/shop?prefix=a_&retention=2h&create=false&pool=3&timeout=7s",
		"app@tcp(db)/shop?prefix=a_&retention=2h&create=false&pool=3&timeout=7s",
	} {
		p, err := parse(raw)
		noError(t, err)
		if o := p.options; o.Prefix != "a_" || o.Retention != 2*time.Hour || !o.MustExist || p.poolSize != 3 || p.config.Timeout != 7*time.Second {
			t.Errorf("%s was not read: %+v, pool %d, timeout %v", raw, o, p.poolSize, p.config.Timeout)
		}
		if p.options.Location != "db:3306/shop" {
			t.Errorf("%s has the location %q, want db:3306/shop", raw, p.options.Location)
		}
	}
}

// Open refuses a bad URL before the first request, and its error has no password.
func TestBadURLsAreRefused(t *testing.T) {
	for _, raw := range []string{
		"mysql://app:hunter2@db:3306",
		"mysql://app:hunter2@db:3306/",
		"mysql://app:hunter2@db:3306/a/b",
		"mysql://app:hunter2@db:0/shop",
		"mysql://app:hunter2@db:99999/shop",
		"mysql://app:hunter2@db:port/shop",
		"mysql://app:hunter2@a,b/shop",
		"mysql://app:hunter2@db/shop#hunter2",
		"mysql://app:hunter2@db/shop?prefx=hunter2",
		"mysql://app:hunter2@db/shop?prefix=a-b",
		"mysql://app:hunter2@db/shop?prefix=a_&prefix=b_",
		"mysql://app:hunter2@db/shop?retention=1s",
		"mysql://app:hunter2@db/shop?create=perhaps",
		"mysql://app:hunter2@db/shop?pool=1",
		"mysql://app:hunter2@db/shop?sql_mode=hunter2",
		"mysql://app:hunter2@db/shop?tls=hunter2",
		"mysql://app:hunter2@db/shop?timeout=hunter2",
		"mysql://app:hunter2@db/shop?ca_cert=/nonexistent",
		"mysql://app:hunter2@db/shop?ca_cert=/etc/hosts&tls=skip-verify",
		"mysql://app:/hunter2@db/shop",
		"mysql://app:?hunter2@db/shop",
		"mysql://app:#hunter2@db/shop",
		"mysql:app:hunter2@tcp(db:3306)",
		"mysql:app:hunter2@tcp(db:3306/shop",
		"mysql:app:hunter2@tcp(db:3306)/shop?hunter2=1",
		"app:hunter2@tcp(db:3306)/shop?socket=/tmp/x",
		"app:hunter2@tcp(db:3306)/",
		"app:hunter2@db",
		"",
	} {
		opens := map[string]func() error{
			"Open":        func() error { _, err := Open(context.Background(), raw); return err },
			"driver.Open": func() error { _, err := driver.Open(context.Background(), raw); return err },
		}
		for name, open := range opens {
			err := open()
			if _, ok := errors.AsType[*driver.InvalidError](err); !ok {
				t.Errorf("%s(%q): %v; want an InvalidError", name, raw, err)
			}
			if err != nil && !strings.Contains(raw, "?hunter2=1") && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s shows the password: %v", name, err)
			}
		}
	}
}

func TestInvalidOptionsAreRefused(t *testing.T) {
	if _, err := New(nil, nil); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("New(nil): %v; want ErrInvalid", err)
	}
	for _, o := range []Options{{Prefix: "a`b"}, {Prefix: strings.Repeat("a", 33)}, {Retention: time.Second}} {
		if _, err := o.withDefaults(); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%+v: %v; want ErrInvalid", o, err)
		}
	}
}
