package main

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// Programs read these fields and values.
func TestJSON(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 7, 1, 14, 2, 11, 5000, time.FixedZone("", 7200))
	e := pawl.Entry{
		Name: "x", Fence: 1<<63 + 1, ClosedFor: 1500 * time.Millisecond,
		Holders: []pawl.Holder{
			{Fence: 1 << 63, Permits: driver.Exclusive, Limit: driver.Unlimited, Since: since, TTL: 30 * time.Second, ExpiresIn: 29 * time.Second},
			{Fence: 1<<63 + 1, Permits: 2, Limit: 3, Owner: pawl.Owner{Client: "c", Host: "h", PID: 7, Labels: map[string]string{"k": "v"}}, Released: true},
		},
		Waiters: []pawl.Waiter{{Permits: 1, Limit: driver.Unlimited, Since: since, ExpiresIn: 4999 * time.Microsecond}},
	}
	const want = `{"name":"x","known":true,"fence":9223372036854775809,"closed_for_ms":1500,` +
		`"holders":[{"fence":9223372036854775808,"kind":"exclusive","permits":0,"limit":0,` +
		`"owner":{"client":"","host":"","pid":0,"labels":{}},"since":"2026-07-01T12:02:11.000005Z","expires_in_ms":29000,"ttl_ms":30000},` +
		`{"fence":9223372036854775809,"kind":"permits","permits":2,"limit":3,` +
		`"owner":{"client":"c","host":"h","pid":7,"labels":{"k":"v"}},"since":"0001-01-01T00:00:00Z","expires_in_ms":0,"ttl_ms":0,"released":true}],` +
		`"waiters":[{"kind":"shared","permits":0,"limit":0,"owner":{"client":"","host":"","pid":0,"labels":{}},` +
		`"since":"2026-07-01T12:02:11.000005Z","expires_in_ms":4}]}` + "\n"
	var out bytes.Buffer
	noError(t, printEntryJSON(&out, e))
	if out.String() != want {
		t.Errorf("got  %s\nwant %s", &out, want)
	}
}

// The value of a name may have any bytes, or none.
func TestAnyValueOfANameIsPrinted(t *testing.T) {
	t.Parallel()
	for value, want := range map[string][2]string{
		"10.0.0.7:80":   {`"10.0.0.7:80"`, `"MTAuMC4wLjc6ODA="`},
		"":              {`""`, `""`},
		"\x1b[2J\xff\"": {`"\x1b[2J\xff\""`, `"G1sySv8i"`},
	} {
		e := pawl.Entry{Name: "x", Fence: 7, Value: []byte(value), ValueFence: 5}
		var words, line bytes.Buffer
		noError(t, printEntry(&words, e, time.Now()))
		noError(t, printEntryJSON(&line, e))
		if got := words.String(); got != "x is free; its last fence is 7; its value is "+want[0]+"\n" {
			t.Errorf("shown as %s", got)
		}
		if got := line.String(); !strings.Contains(got, `"value":`+want[1]+`,"value_fence":5`) {
			t.Errorf("printed as %s", got)
		}
	}
}

// Every field of a lease or a place is printed, for people and for programs.
func TestEachFieldOfAClaimIsPrinted(t *testing.T) {
	t.Parallel()
	notForPeople := []string{"Waiter.ExpiresIn"}
	now := time.Now()
	printed := func(h pawl.Holder, w pawl.Waiter) (people, programs string) {
		e := pawl.Entry{Name: "x", Holders: []pawl.Holder{h}, Waiters: []pawl.Waiter{w}}
		var words, line bytes.Buffer
		noError(t, errors.Join(printEntry(&words, e, now), printEntryJSON(&line, e)))
		return words.String(), line.String()
	}
	var change func(path string, v reflect.Value, changed func(path string))
	change = func(path string, v reflect.Value, changed func(path string)) {
		before := reflect.ValueOf(v.Interface())
		switch v.Interface().(type) {
		case time.Time:
			v.Set(reflect.ValueOf(now.Add(-time.Minute)))
		case time.Duration:
			v.SetInt(int64(time.Hour))
		case string:
			v.SetString("other")
		case bool:
			v.SetBool(true)
		case map[string]string:
			v.Set(reflect.ValueOf(map[string]string{"other": "label"}))
		case int:
			v.SetInt(v.Int() + 1)
		case uint64:
			v.SetUint(7)
		default:
			for i := range v.NumField() {
				change(path+"."+v.Type().Field(i).Name, v.Field(i), changed)
			}
			return
		}
		changed(path)
		v.Set(before)
	}
	h := pawl.Holder{Permits: 1, Limit: 3, Owner: pawl.Owner{Host: "h", PID: 1}}
	w := pawl.Waiter{Permits: 1, Limit: 3, Owner: pawl.Owner{Host: "h", PID: 1}}
	people, programs := printed(h, w)
	changed := func(path string) {
		peopleNow, programsNow := printed(h, w)
		if (peopleNow == people) != slices.Contains(notForPeople, path) {
			t.Errorf("pawl show prints %s: %v; table.go prints what people see", path, peopleNow != people)
		}
		if programsNow == programs {
			t.Errorf("pawl show --json does not print %s: add it to the types in json.go, and to the help in show.go", path)
		}
	}
	change("Holder", reflect.ValueOf(&h).Elem(), changed)
	change("Waiter", reflect.ValueOf(&w).Elem(), changed)
	help := newShow(&output{}, &location{}).Long
	for _, typ := range []reflect.Type{reflect.TypeFor[jsonEntry](), reflect.TypeFor[jsonHolder](), reflect.TypeFor[jsonClaim](), reflect.TypeFor[pawl.Owner]()} {
		for field := range typ.Fields() {
			if key, _, _ := strings.Cut(field.Tag.Get("json"), ","); !strings.Contains(help, strings.TrimSuffix(key, "s")) {
				t.Errorf("the help of pawl show does not name %s", key)
			}
		}
	}
}

// Other people choose some of the printed text. It stays printable and on its line, and
// JSON returns it unchanged.
func TestNothingPrintedMovesTheCursor(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for r := rune(1); r < 0x3000; r++ {
		if !unicode.IsPrint(r) {
			all.WriteRune(r)
		}
	}
	all.WriteString("\U000e0041\U0001d173 \xff fine: é 漢 😀")
	evil := all.String()
	e := pawl.Entry{
		Name:    evil,
		Holders: []pawl.Holder{{Permits: 1, Limit: 1, Owner: pawl.Owner{Host: evil, Client: evil, PID: 1, Labels: map[string]string{evil: evil}}}},
		Waiters: []pawl.Waiter{{Permits: 1, Limit: 1, Owner: pawl.Owner{Client: evil}}},
	}
	var list, entry, asJSON, messages bytes.Buffer
	v := &output{err: &messages}
	v.say("lost %s, %v", evil, e.Holders[0].Owner)
	noError(t, errors.Join(printList(&list, []pawl.Entry{e}, time.Now()), printEntry(&entry, e, time.Now()), printEntryJSON(&asJSON, e)))
	for what, text := range map[string]string{"ls": list.String(), "show": entry.String(), "--json": asJSON.String(), "say": messages.String()} {
		for _, r := range text {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Errorf("%s: %q is printed as it is", what, r)
			}
		}
		if !strings.Contains(text, "fine: é 漢 😀") {
			t.Errorf("%s: printable text is missing: %s", what, text)
		}
	}
	for what, lines := range map[string][2]int{"ls": {strings.Count(list.String(), "\n"), 2}, "say": {strings.Count(messages.String(), "\n"), 1}, "--json": {strings.Count(asJSON.String(), "\n"), 1}} {
		if lines[0] != lines[1] {
			t.Errorf("%s: %d lines, want %d", what, lines[0], lines[1])
		}
	}
	if got, want := decode[jsonEntry](t, asJSON.String()).Name, strings.ToValidUTF8(evil, "\ufffd"); got != want {
		t.Errorf("JSON gives back %q, want %q", got, want)
	}
}

func TestTimeOfDayShowsTheDateOfOtherDays(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 1, 23, 0, 0, 0, time.Local)
	if got := timeOfDay(now.Add(-time.Minute), now); got != "22:59:00" {
		t.Errorf("today: %s", got)
	}
	if got := timeOfDay(now.AddDate(0, 0, -1), now); got != "2026-06-30 23:00:00" {
		t.Errorf("yesterday: %s", got)
	}
}
