package pawl_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// What no constructor has made answers with an error that says so, and does not panic.
func TestAZeroValueIsRefusedByEachMethod(t *testing.T) {
	answersNothing := []string{"Format", "LogValue", "Part", "Writer", "Reader", "Permits"}
	for _, zero := range []any{
		&pawl.Client{}, (*pawl.Client)(nil), &pawl.Lease{}, (*pawl.Lease)(nil), &pawl.Leases{}, (*pawl.Leases)(nil), &pawl.Locks{},
		(*pawl.Locks)(nil), &pawl.Mutex{}, &pawl.RWMutex{}, &pawl.Semaphore{}, &pawl.Once{}, &pawl.Election{}, pawl.All(&pawl.Mutex{}),
		(*pawl.Mutex)(nil), (*pawl.RWMutex)(nil), (*pawl.Semaphore)(nil), (*pawl.Once)(nil), (*pawl.Election)(nil),
		pawl.All((*pawl.Mutex)(nil)), pawl.All((*pawl.RWMutex)(nil).Writer()), pawl.All((*pawl.RWMutex)(nil).Reader()),
		pawl.All((*pawl.Semaphore)(nil).Permits(1)),
		(*pawl.Client)(nil).Mutex("x"), (&pawl.Client{}).RWMutex("x"), (&pawl.Client{}).Semaphore("x", 1),
		(&pawl.Client{}).Once("x"), (&pawl.Client{}).Election("x"),
	} {
		v := reflect.ValueOf(zero)
		for i := range v.NumMethod() {
			name, method := v.Type().Method(i).Name, v.Method(i)
			if slices.Contains(answersNothing, name) || testOnly[name] {
				continue
			}
			t.Run(fmt.Sprintf("%T/%s", zero, name), func(t *testing.T) {
				var in []reflect.Value
				for j := range method.Type().NumIn() {
					if method.Type().IsVariadic() && j == method.Type().NumIn()-1 {
						break
					}
					in = append(in, argument(method.Type().In(j)))
				}
				for _, out := range method.Call(in) {
					if err, ok := reflect.TypeAssert[error](out); ok {
						isError(t, err, pawl.ErrInvalid)
					} else if out.Type() == reflect.TypeFor[error]() && name != "SetValue" {
						t.Error("it says nothing")
					}
					switch each := out.Interface().(type) {
					case iter.Seq2[pawl.Entry, error]:
						for _, err := range each {
							isError(t, err, pawl.ErrInvalid)
						}
					case iter.Seq2[pawl.Leader, error]:
						for _, err := range each {
							isError(t, err, pawl.ErrInvalid)
						}
					}
				}
			})
		}
	}
}

// testOnly are methods that only tests have.
var testOnly = map[string]bool{"Gates": true, "Leases": true, "Inboxes": true}

// argument is a value of a type with which a call would be right.
func argument(of reflect.Type) reflect.Value {
	switch of {
	case reflect.TypeFor[context.Context]():
		return reflect.ValueOf(background)
	case reflect.TypeFor[func(context.Context) error]():
		return reflect.ValueOf(func(context.Context) error { return nil })
	case reflect.TypeFor[string]():
		return reflect.ValueOf("x")
	case reflect.TypeFor[int]():
		return reflect.ValueOf(1)
	}
	return reflect.Zero(of)
}

func TestATypedNilIsNoDriver(t *testing.T) {
	_, err := pawl.New((*locktable.Driver)(nil), nil)
	isError(t, err, pawl.ErrInvalid)
}

// Whatever is printed, with whatever verb, a copy too, it has no token.
func TestNothingPrintsATokenWhateverTheVerb(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, net := w.client(nil)
		var tokens []driver.Token
		net.claimed = func(x driver.Token) { tokens = append(tokens, x) }
		lease := must(t)(c.Mutex("x").Lock(background))
		both := pawl.All(c.Mutex("y"), c.Mutex("z"))
		leases, err := both.Lock(background)
		noError(t, err)
		mutex, election := c.Mutex("x"), c.Election("e")
		for _, x := range []any{c, lease, *lease, leases, *leases, both, *both, mutex, *mutex, election, c.Once("o"), c.Semaphore("s", 1), c.RWMutex("r")} {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p", "%T"} {
				said := fmt.Sprintf(verb, x)
				for _, token := range tokens {
					plain := strings.Trim(fmt.Sprint([16]byte(token)), "[]")
					goForm := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", [16]byte(token)), "[16]uint8{"), "}")
					for _, form := range []string{plain, goForm, string(token[:]), hex.EncodeToString(token[:])} {
						if strings.Contains(strings.ToLower(said), form) {
							t.Errorf("%T prints a token with %s", x, verb)
						}
					}
				}
				if len(said) > 200 && verb != "%p" { // which asks no Formatter
					t.Errorf("%T prints %d bytes with %s", x, len(said), verb)
				}
			}
		}
		noError(t, errors.Join(lease.Release(background), leases.Release(background)))
	})
}

func TestAHandleThatWasAlteredIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, net := w.client(nil)
		handle, err := must(t)(c.Mutex("x").Lock(background)).Detach(background)
		noError(t, err)
		asked := net.count("renew")
		for i := range handle {
			for _, other := range "A7z_" {
				if altered := handle[:i] + string(other) + handle[i+1:]; altered != handle {
					_, err := c.Attach(background, altered)
					isError(t, err, pawl.ErrInvalid)
				}
			}
		}
		if net.count("renew") != asked {
			t.Error("the backend was asked")
		}
		noError(t, must(t)(c.Attach(background, handle)).Release(background))
	})
}
