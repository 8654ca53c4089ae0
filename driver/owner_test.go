package driver_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/pawl-go/pawl/driver"
)

func TestOwnersForPeople(t *testing.T) {
	label := func(k, v string) driver.Owner { return driver.Owner{Host: "h", Labels: map[string]string{k: v}} }
	for want, o := range map[string]driver.Owner{
		"somebody":          {},
		"web-3:7":           {Client: "~0123456789abcdef", Host: "web-3", PID: 7},
		"web-3":             {Client: "~0123456789abcdef", Host: "web-3"},
		"c at web-3:7":      {Client: "c", Host: "web-3", PID: 7},
		":7":                {PID: 7},
		"c":                 {Client: "c"},
		"h a=1 b=2 c=3":     {Host: "h", Labels: map[string]string{"c": "3", "a": "1", "b": "2"}},
		"h k=":              label("k", ""),
		"h naïve=Καφές":     label("naïve", "Καφές"),
		`"evil\x1b[2J":7`:   {Host: "evil\x1b[2J", PID: 7},
		`"c\r\nforged"`:     {Client: "c\r\nforged"},
		`h "k\n"="v\x00"`:   label("k\n", "v\x00"),
		`h k="\u202egnp"`:   label("k", "\u202egnp"), // turns the rest of the line around
		`h k="a\u200bb"`:    label("k", "a\u200bb"),  // is invisible
		`h k="a\u2028b"`:    label("k", "a\u2028b"),  // is a new line to some
		`h k="\u009b31m"`:   label("k", "\u009b31m"), // is an escape sequence to some terminals
		`h k="say \"hi\""`:  label("k", `say "hi"`),
		`h k="\xff"`:        label("k", "\xff"),
		`h k="a\u3164"`:     label("k", "a\u3164"),     // a letter that shows nothing
		`h k="1 admin=yes"`: label("k", "1 admin=yes"), // would look like a second label
		`h "a=b"=c`:         label("a=b", "c"),
	} {
		if got := o.String(); got != want {
			t.Errorf("owner %+v is shown as %s, want %s", o.Labels, got, want)
		}
	}
}

// People see each field of an owner. Each text in it is as long as a label or shorter.
func TestEachFieldOfAnOwnerIsShownAndBounded(t *testing.T) {
	plain := driver.Owner{Host: "h", PID: 1}
	for i, typ := 0, reflect.TypeFor[driver.Owner](); i < typ.NumField(); i++ {
		name, o := typ.Field(i).Name, plain
		switch f := reflect.ValueOf(&o).Elem().Field(i); f.Kind() {
		case reflect.String:
			for _, text := range []string{"\xff", strings.Repeat("x", driver.MaxLabel+1)} {
				f.SetString(text)
				if err := o.Validate(); !errors.Is(err, driver.ErrInvalid) {
					t.Errorf("driver.Owner.%s may be %.9q: bound it in Owner.Validate", name, text)
				}
			}
		case reflect.Int:
			f.SetInt(7)
		case reflect.Map:
			f.Set(reflect.ValueOf(map[string]string{"k": "v"}))
		default:
			t.Fatalf("driver.Owner.%s is a %v: give it another value here", name, f.Type())
		}
		if o.String() == plain.String() {
			t.Errorf("driver.Owner.%s is not shown", name)
		}
	}
}

func FuzzOwnerIsSafeToPrint(f *testing.F) {
	f.Add("host", "client", "key", "value")
	f.Add("\x1b[0m", "\u202e", "\x9b", "\ufffd")
	f.Fuzz(func(t *testing.T, host, client, k, v string) {
		s := driver.Owner{Host: host, Client: client, Labels: map[string]string{k: v}}.String()
		if i := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) }); i >= 0 {
			t.Errorf("%q has %q in it", s, s[i:])
		}
	})
}
