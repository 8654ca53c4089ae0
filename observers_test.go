package pawl_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/pawl-go/pawl"
)

// Whatever fields an Observer will have: all observers that have one are told, in order.
func TestObserversAreAllTold(t *testing.T) {
	var told []string
	named := func(name string) *pawl.Observer {
		o := &pawl.Observer{}
		v := reflect.ValueOf(o).Elem()
		for i := range v.NumField() {
			field := v.Type().Field(i).Name
			v.Field(i).Set(reflect.MakeFunc(v.Field(i).Type(), func([]reflect.Value) []reflect.Value {
				told = append(told, name+" "+field)
				return nil
			}))
		}
		return o
	}
	all := reflect.ValueOf(pawl.Observers(named("a"), nil, &pawl.Observer{}, named("b"))).Elem()
	for i := range all.NumField() {
		told = nil
		all.Field(i).Call([]reflect.Value{reflect.Zero(all.Field(i).Type().In(0))})
		field := all.Type().Field(i).Name
		if want := []string{"a " + field, "b " + field}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	}
	none := reflect.ValueOf(pawl.Observers(nil, &pawl.Observer{})).Elem()
	for i := range none.NumField() {
		if !none.Field(i).IsNil() {
			t.Errorf("%s of nobody is not nil", none.Type().Field(i).Name)
		}
	}
}
