package driver_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
)

func TestTheTextOfAnOwner(t *testing.T) {
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
		`h k="\u202egnp"`:   label("k", "\u202egnp"), // shows the rest of the line from right to left
		`h k="a\u200bb"`:    label("k", "a\u200bb"),  // is invisible
		`h k="a\u2028b"`:    label("k", "a\u2028b"),  // is a line break in some terminals
		`h k="\u009b31m"`:   label("k", "\u009b31m"), // is an escape sequence in some terminals
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

// An owner that one client can store and another cannot read would make a name unusable
// for all clients.
func TestValidateRefusesOwnersThatCannotBeStored(t *testing.T) {
	maxPID := math.MaxInt32 // maxPID + 1 is negative if an int has 32 bits, and refused, too
	long := func(n int) string { return strings.Repeat("x", n) }
	withLabel := func(k, v string) driver.Owner { return driver.Owner{Labels: map[string]string{k: v}} }
	for name, c := range map[string]struct {
		owner driver.Owner
		field string
	}{
		"empty":                   {driver.Owner{}, ""},
		"sixteen labels":          {driver.Owner{Labels: labels(16)}, ""},
		"seventeen labels":        {driver.Owner{Labels: labels(17)}, "labels"},
		"empty value":             {withLabel("k", ""), ""},
		"empty key":               {withLabel("", "v"), "label"},
		"longest label":           {withLabel(long(256), long(256)), ""},
		"longer key":              {withLabel(long(257), ""), "label"},
		"longer value":            {withLabel("k", long(257)), "label"},
		"key that is not UTF-8":   {withLabel("\xff", ""), "label"},
		"value that is not UTF-8": {withLabel("k", "\xff"), "label"},
		"control characters":      {withLabel("k\x1b", "v\n"), ""}, // stored as they are, shown quoted
		"longest host":            {driver.Owner{Host: long(256), Client: long(256)}, ""},
		"longer host":             {driver.Owner{Host: long(257)}, "host"},
		"longer client":           {driver.Owner{Client: long(257)}, "client"},
		"host that is not UTF-8":  {driver.Owner{Host: "\xff"}, "host"},
		"negative pid":            {driver.Owner{PID: -1}, "pid"},
		"largest pid":             {driver.Owner{PID: maxPID}, ""},
		"larger pid":              {driver.Owner{PID: maxPID + 1}, "pid"},
	} {
		t.Run(name, func(t *testing.T) { wantInvalid(t, c.owner.Validate(), c.field) })
	}
}

// Owner's methods show, bound, compare and copy each field. Texts are no longer than a
// label.
func TestTheMethodsOfOwnerTreatEachField(t *testing.T) {
	all, plain := basictest.FullOwner(), driver.Owner{Host: "h", PID: 1}
	for i, typ := 0, reflect.TypeFor[driver.Owner](); i < typ.NumField(); i++ {
		name, o := typ.Field(i).Name, plain
		f := reflect.ValueOf(&o).Elem().Field(i)
		if f.Kind() == reflect.String {
			for _, text := range []string{"\xff", strings.Repeat("x", driver.MaxLabelSize+1)} {
				f.SetString(text)
				if err := o.Validate(); !errors.Is(err, driver.ErrInvalid) {
					t.Errorf("driver.Owner.%s may be %.9q: refuse that in Owner.Validate", name, text)
				}
			}
		}
		f.Set(reflect.ValueOf(all).Field(i))
		if o.String() == plain.String() {
			t.Errorf("driver.Owner.%s is not shown: return it in Owner.Details", name)
		}
		if o.Equal(plain) || plain.Equal(o) {
			t.Errorf("owners that differ in driver.Owner.%s are equal: compare it in Owner.Equal", name)
		}
		if f.Kind() == reflect.Map && reflect.ValueOf(o.Clone()).Field(i).Pointer() == f.Pointer() {
			t.Errorf("a clone shares driver.Owner.%s: copy it in Owner.Clone", name)
		}
	}
	if copied := all.Clone(); !all.Equal(copied) || !all.Equal(basictest.FullOwner()) {
		t.Errorf("the owner %v and its clone %v are not equal", all, copied)
	}
	largest := basictest.LargestOwner()
	wantInvalid(t, largest.Validate(), "")
}

func FuzzOwnerIsSafeToPrint(f *testing.F) {
	f.Add("host", "client", "key", "value")
	f.Add("\x1b[0m", "\u202e", "\x9b", "\ufffd")
	f.Fuzz(func(t *testing.T, host, client, k, v string) {
		s := driver.Owner{Host: host, Client: client, Labels: map[string]string{k: v}}.String()
		if i := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) }); i >= 0 {
			t.Errorf("%q contains %q, which is not graphic", s, s[i:])
		}
	})
}
