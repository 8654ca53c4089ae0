// Package zero calls every exported function and method of the packages for users with
// zero values, nils and typed nils. None may hang, and none may panic unless its comment
// says so.
package zero_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNothingPanicsOrHangsWithZeroValues(t *testing.T) {
	f, constructors := exportedAPI(t), receivers(t)
	t.Chdir(t.TempDir()) // some functions create a file
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		check(t, f, name, reflect.ValueOf(functions[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		pointer := reflect.PointerTo(types[name])
		for i := range pointer.NumMethod() {
			method := name + "." + pointer.Method(i).Name
			construct := constructors[name]
			if construct != nil {
				check(t, f, method, reflect.ValueOf(construct()).Method(i))
			}
			if construct == nil || strings.HasPrefix(name, "pawl.") {
				check(t, f, method, reflect.New(types[name]).Method(i))
			}
		}
	}
}

func check(t *testing.T, f *api, name string, fn reflect.Value) {
	t.Helper()
	pkg, _, _ := strings.Cut(name, ".")
	if f.panics[name] || mayPanic[name] != "" || mayPanic[name[:strings.LastIndexByte(name, '.')]] != "" || mayPanic[pkg] != "" {
		return
	}
	for _, args := range arguments(fn.Type()) {
		if isForClients(name) && slices.ContainsFunc(args, func(a reflect.Value) bool { return a.Type() == contextType && a.IsNil() }) {
			continue
		}
		if failure := call(fn, args); failure != "" {
			t.Errorf("%s(%s): %s", name, typesOf(args), failure)
			return
		}
	}
}

// mayPanic has packages, types, functions and methods that may panic although no comment
// says so, with the reasons.
var mayPanic = map[string]string{
	"drivertest":              "its test ends in any case",
	"pawltest":                "its test ends in any case",
	"driver.End":              forDrivers,
	"driver.URLParameters":    forDrivers,
	"locktable.Damaged":       forDrivers,
	"locktable.Entry.Acquire": forDrivers,
	"locktable.Entry.Raise":   forDrivers,
	"locktable.Entry.Refuses": forDrivers,
	"locktable.Entry.Release": forDrivers,
	"locktable.Entry.Renew":   forDrivers,
	"locktable.WithRows":      forDrivers,
	"swap.Clock.Ask":          forDrivers,
	"swap.Table":              forDrivers,
}

const forDrivers = "only drivers call it, and give it what the client gave them"

// isForClients reports whether name is a method of a driver that only a client calls, and
// so never with a nil ctx.
func isForClients(name string) bool {
	return strings.Contains(name, "Driver.") && !strings.Contains(name, ".CheckLease")
}

// arguments returns lists of arguments. The first list has the first value of each
// parameter, the zero value, and the second list has the last one. Each other list
// differs from one of them in one parameter.
func arguments(fn reflect.Type) (lists [][]reflect.Value) {
	var first, last []reflect.Value
	var values [][]reflect.Value
	for in := range fn.Ins() {
		v := valuesOf(in)
		values, first, last = append(values, v), append(first, v[0]), append(last, v[len(v)-1])
	}
	lists = append(lists, first, last)
	for i := range values {
		for _, v := range values[i] {
			for _, others := range [][]reflect.Value{first, last} {
				list := slices.Clone(others)
				list[i] = v
				lists = append(lists, list)
			}
		}
	}
	return lists
}

var contextType = reflect.TypeFor[context.Context]()

var endedContext = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// valuesOf returns values of a type. The first is the zero value.
func valuesOf(t reflect.Type) []reflect.Value {
	if construct := realArguments[t]; construct != nil {
		return []reflect.Value{construct()}
	}
	values := []reflect.Value{reflect.Zero(t)}
	switch t.Kind() { //nolint:exhaustive // of the others, the zero value is enough
	case reflect.String:
		values = append(values, reflect.ValueOf("x").Convert(t))
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Uint32:
		values = append(values, reflect.ValueOf(1).Convert(t))
	case reflect.Pointer:
		if isMadeByUsers(t.Elem()) {
			values = append(values, reflect.New(t.Elem()))
		}
	case reflect.Slice:
		for _, v := range valuesOf(t.Elem()) {
			s := reflect.MakeSlice(t, 0, 3)
			values = append(values, reflect.Append(s, v), reflect.Append(s, v, v, v))
		}
	case reflect.Interface:
		if t == contextType {
			return append(values, reflect.ValueOf(&endedContext).Elem())
		}
		if t == reflect.TypeFor[error]() || t.NumMethod() == 0 {
			break
		}
		for _, name := range slices.Sorted(maps.Keys(types)) {
			if p := reflect.PointerTo(types[name]); p.Implements(t) {
				values = append(values, reflect.Zero(p))
			}
		}
	}
	return values
}

// isMadeByUsers reports whether users make values of a struct without a constructor.
func isMadeByUsers(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && strings.HasPrefix(t.PkgPath(), "github.com/pawl-go/pawl") && t.Name() != "Driver"
}

// call calls a function, and returns a message if it panics or hangs.
func call(fn reflect.Value, args []reflect.Value) (failure string) {
	done := make(chan string, 1)
	go func() {
		defer close(done)
		defer func() {
			if r := recover(); r != nil {
				done <- fmt.Sprintf("panics: %v\n%s", r, panicLine(debug.Stack()))
			}
		}()
		if fn.Type().IsVariadic() {
			fn.CallSlice(args)
		} else {
			fn.Call(args)
		}
	}()
	select {
	case failure = <-done:
		return failure
	case <-time.After(time.Minute): // only a hang takes so long
		return "hangs"
	}
}

// panicLine returns the line of a stack at which a panic happened.
func panicLine(stack []byte) string {
	_, after, _ := strings.Cut(string(stack), "panic(")
	for line := range strings.SplitSeq(after, "\n") {
		if strings.HasPrefix(line, "\t") && strings.Contains(line, ".go:") && !strings.Contains(line, "/src/runtime/") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

func typesOf(args []reflect.Value) string {
	var all []string
	for _, a := range args {
		all = append(all, fmt.Sprintf("%T", a.Interface()))
	}
	return strings.Join(all, ", ")
}
