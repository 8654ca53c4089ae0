package pawl

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/memlock"
)

// Short names for the helpers of all tests.
var noError = basictest.NoError

func must[T any](v T, err error) func(basictest.TB) T { return basictest.Must(v, err) }

// Some code compares, copies or refuses the fields of a struct one by one. These tests
// try each field, so that they fail if a new field is forgotten.

// eachField calls f with the path of each field of a struct and of the structs in it. f
// may set the field.
func eachField(t *testing.T, x any, f func(path string, field reflect.Value)) {
	t.Helper()
	var walk func(prefix string, v reflect.Value)
	walk = func(prefix string, v reflect.Value) {
		for i := range v.NumField() {
			field, path := v.Field(i), prefix+v.Type().Field(i).Name
			field = reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
			switch field.Type() {
			case reflect.TypeFor[driver.Claim]():
				walk(prefix, field)
			case reflect.TypeFor[driver.Owner]():
				walk(path+".", field)
			default:
				f(path, field)
			}
		}
	}
	walk("", reflect.ValueOf(x).Elem())
}

// change changes the value of a field.
func change(t *testing.T, path string, field reflect.Value) {
	t.Helper()
	switch v := field.Addr().Interface().(type) {
	case *string:
		*v += "x"
	case *bool:
		*v = !*v
	case *[]byte:
		*v = append(slices.Clone(*v), 'x')
	case *map[string]string:
		*v = map[string]string{"x": time.Now().String()}
	case *time.Time:
		*v = v.Add(time.Second)
	case *func(context.Context) error:
		*v = func(context.Context) error { return nil }
	case *[]Holder:
		*v = append(slices.Clone(*v), Holder{})
	case *[]Waiter:
		*v = append(slices.Clone(*v), Waiter{})
	default:
		switch {
		case field.CanInt():
			field.SetInt(field.Int() + 1)
		case field.CanUint():
			field.SetUint(field.Uint() + 1)
		default:
			t.Fatalf("%s: change knows no other value of a %v", path, field.Type())
		}
	}
}

// A holder passes its lease only to a claim that would get the same lease. If
// canShareLease forgets a field, a claim gets a lease that it did not ask for.
func TestALeaseServesOnlyAClaimThatAskedForTheSame(t *testing.T) {
	ignored := []string{ // these fields of a call do not change the lease
		"Name", "space", "Token", // equal for all claims of a local queue, or unique
		"QueueTTL", "Queue", "Force", "Fences", "MinFence", "Ticket", // how the lease is granted
		"lockTTL", // differs from TTL only with a maximum hold
		"ctx", "lateAttemptEnd", "inbox", "waiter", "passedLease", "request",
	}
	neverShared := []string{"minHold", "maxHold", "Value", "ValueBelow", "health"} // the backend makes each grant
	one, other := &claim{}, &claim{}
	if !one.canShareLease(other) {
		t.Fatal("two claims for the same cannot share a lease")
	}
	eachField(t, one, func(path string, field reflect.Value) {
		if slices.Contains(ignored, path) {
			return
		}
		before := reflect.New(field.Type()).Elem()
		before.Set(field)
		change(t, path, field)
		if one.canShareLease(other) || other.canShareLease(one) {
			t.Errorf("claims that differ in %s share a lease: compare it in claim.canShareLease, or list it in ignored if it does not change the lease", path)
		}
		same := &claim{}
		eachField(t, same, func(p string, f reflect.Value) {
			if p == path {
				f.Set(field)
			}
		})
		if one.canShareLease(same) == slices.Contains(neverShared, path) {
			t.Errorf("claims with the same %s share a lease: %v", path, one.canShareLease(same))
		}
		field.Set(before)
	})
}

// Attach refuses each option that only a grant can set. grantOption makes such an option.
func TestAttachRefusesOptionsWithoutEffect(t *testing.T) {
	allowed := []string{"WithGrace", "WithMaxHold", "WithHealth"}
	option := regexp.MustCompile(`(?m)^func (With\w+)\(.*\) LockOption \{\s*return (.*)`)
	files := must(filepath.Glob("*.go"))(t)
	options := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source := must(os.ReadFile(file))(t)
		options += strings.Count(string(source), ") LockOption {")
		for _, m := range option.FindAllStringSubmatch(string(source), -1) {
			options--
			refused := strings.HasPrefix(m[2], `grantOption("`+m[1]+`", `)
			if refused == slices.Contains(allowed, m[1]) {
				t.Errorf("%s: make it with grantOption and its name, or if it has an effect on an attached lease, list it in allowed", m[1])
			}
		}
	}
	if options != 1 { // grantOption itself
		t.Errorf("%d options were not found", options-1)
	}
}

// A handle has every field that the backend's lease needs.
func TestAnAttachedLeaseIsTheOneThatWasDetached(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := must(New(memlock.New(nil), nil))(t)
		defer c.Close()
		s := c.Semaphore("x", 3, WithTTL(time.Minute), WithMinHold(time.Second), WithLockDelay(time.Hour))
		detached := must(s.Acquire(context.Background(), 2))(t)
		handle := must(detached.Detach(context.Background()))(t)
		h := must(handle.parse())(t)
		eachField(t, &h, func(path string, field reflect.Value) {
			if field.IsZero() {
				t.Errorf("the handle has no %s; Detach must set it", path)
			}
		})
		attached := must(c.Attach(context.Background(), handle))(t)
		ignored := []string{"Queue", "ctx", "inbox", "waiter", "passedLease", "request"}
		before := map[string]any{}
		eachField(t, detached.claim, func(path string, field reflect.Value) { before[path] = field.Interface() })
		eachField(t, attached.claim, func(path string, field reflect.Value) {
			if !slices.Contains(ignored, path) && !reflect.DeepEqual(before[path], field.Interface()) {
				t.Errorf("%s is %v, and was %v before Detach", path, field.Interface(), before[path])
			}
		})
	})
}

// Watch yields an entry if any field has changed, except those that time or a renewal
// changes.
func TestWatchComparesAllThatDoesNotChangeByItself(t *testing.T) {
	ignoredAlways := []string{"Name", "ExpiresIn", "TTL"}
	// A fence determines the owner and the beginning. A waiter has no fence, so Watch
	// compares its client and its beginning.
	ignoredInHolder, ignoredInWaiter := []string{"Since"}, []string{}
	for i, owner := 0, reflect.TypeFor[driver.Owner](); i < owner.NumField(); i++ {
		path := "Owner." + owner.Field(i).Name
		if ignoredInHolder = append(ignoredInHolder, path); path != "Owner.Client" {
			ignoredInWaiter = append(ignoredInWaiter, path)
		}
	}
	entry := func() *Entry {
		return &Entry{ClosedFor: time.Second, Holders: make([]Holder, 2), Waiters: make([]Waiter, 2)}
	}
	compare := func(what string, of func(*Entry) any, ignored []string) {
		changed := entry()
		eachField(t, of(changed), func(path string, field reflect.Value) {
			before := reflect.New(field.Type()).Elem()
			before.Set(field)
			change(t, path, field)
			if path == "ClosedFor" { // only its end is a change
				if !sameEntries(changed, entry()) {
					t.Error("an entry that stays closed counts as changed")
				}
				field.SetInt(0)
			}
			if sameEntries(changed, entry()) != slices.Contains(ignored, path) {
				t.Errorf("%s.%s was changed, and sameEntries returns %v; it must compare fields that do not change with time", what, path, sameEntries(changed, entry()))
			}
			field.Set(before)
		})
	}
	compare("Entry", func(e *Entry) any { return e }, ignoredAlways)
	compare("Holder", func(e *Entry) any { return &e.Holders[1] }, append(ignoredInHolder, ignoredAlways...))
	compare("Waiter", func(e *Entry) any { return &e.Waiters[1] }, append(ignoredInWaiter, ignoredAlways...))
}

// The client distinguishes its own leases by these fields of the owner.
func TestAnotherProcessIsRecognizedByItsOwner(t *testing.T) {
	c := must(New(memlock.New(nil), nil))(t)
	defer c.Close()
	held := &driver.HeldError{Holders: 1, Holder: driver.Holder{Owner: c.settings.owner}}
	eachField(t, &held.Holder.Owner, func(path string, field reflect.Value) {
		before := reflect.New(field.Type()).Elem()
		before.Set(field)
		change(t, path, field)
		if c.heldByOthers(held) != slices.Contains([]string{"Client", "Host", "PID"}, path) {
			t.Errorf("a holder with another %s counts as another process: %v", path, c.heldByOthers(held))
		}
		field.Set(before)
	})
	if c.heldByOthers(held) {
		t.Error("a holder of this client counts as another process")
	}
}
