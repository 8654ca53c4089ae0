package pawl_test

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/memlock"
)

// Each method of a zero value or a nil pointer returns ErrInvalid, and does not panic.
func TestAZeroValueIsRefusedByEachMethod(t *testing.T) {
	withoutError := []string{"Format", "LogValue", "Owner", "RLocker", "Permits"}
	for _, zero := range []any{
		&pawl.Client{}, (*pawl.Client)(nil), &pawl.Lease{}, (*pawl.Lease)(nil), &pawl.GroupLease{}, (*pawl.GroupLease)(nil), &pawl.Group{},
		(*pawl.Group)(nil), &pawl.Mutex{}, &pawl.RWMutex{}, &pawl.Semaphore{}, &pawl.Once{}, &pawl.Election{}, pawl.All(&pawl.Mutex{}),
		(*pawl.Mutex)(nil), (*pawl.RWMutex)(nil), (*pawl.Semaphore)(nil), (*pawl.Once)(nil), (*pawl.Election)(nil),
		pawl.All((*pawl.Mutex)(nil)), pawl.All((*pawl.RWMutex)(nil)), pawl.All((*pawl.RWMutex)(nil).RLocker()), pawl.All(&pawl.RWMutex{}),
		pawl.All((*pawl.Semaphore)(nil).Permits(1)), (*pawl.Semaphore)(nil).Permits(1), (&pawl.Semaphore{}).Permits(1),
		(*pawl.RWMutex)(nil).RLocker(), (&pawl.RWMutex{}).RLocker(), (&pawl.Client{}).RWMutex("x").RLocker(),
		(*pawl.Client)(nil).Mutex("x"), (&pawl.Client{}).RWMutex("x"), (&pawl.Client{}).Semaphore("x", 1),
		(&pawl.Client{}).Once("x"), (&pawl.Client{}).Election("x"),
	} {
		v := reflect.ValueOf(zero)
		for i := range v.NumMethod() {
			name, method := v.Type().Method(i).Name, v.Method(i)
			if slices.Contains(withoutError, name) || testOnly[name] {
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
						t.Error("it returns no error")
					}
					switch each := out.Interface().(type) {
					case <-chan struct{}:
						<-each
					case context.Context:
						isError(t, context.Cause(each), pawl.ErrInvalid)
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

// An ID of the user is shown, even if it consists of hexadecimal digits.
func TestOnlyAGivenIDIsShown(t *testing.T) {
	for id, shown := range map[string]bool{"": false, "0123456789abcdef": true, "7": true} {
		c := must(pawl.New(memlock.New(nil), &pawl.Options{ID: id}))(t)
		owner := c.Self()
		if text := owner.ShortString(); strings.Contains(text, owner.Client) != shown {
			t.Errorf("the client with the ID %q is shown as %q", id, text)
		}
		noError(t, c.Close())
	}
}

func TestATypedNilIsNoDriver(t *testing.T) {
	isError(t, errOf(pawl.New((engine.Driver)(nil), nil)), pawl.ErrInvalid)
}

// testOnly are methods that only tests have.
var testOnly = map[string]bool{"LocalQueues": true, "Leases": true, "Inboxes": true}

// argument returns a valid argument of a type.
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
