package redisscript

import (
	"reflect"
	"testing"

	"github.com/pawl-go/pawl/driver"
)

// What was signed last is taken again for the same claimant only, also when an owner gets
// a new field.
func TestASignatureIsOfAllThatIsSigned(t *testing.T) {
	of := func(box, shard string, o driver.Owner) *signature {
		return &signature{box, shard, o, signed(box, shard, &o)}
	}
	last := of("box", "shard", driver.Owner{})
	if !last.of("box", "shard", &driver.Owner{}) {
		t.Error("what has not changed is signed again")
	}
	if last.of("x", "shard", &driver.Owner{}) || last.of("box", "x", &driver.Owner{}) {
		t.Error("another channel has the same signature")
	}
	owner := reflect.TypeFor[driver.Owner]()
	for i := range owner.NumField() {
		var other driver.Owner
		switch f := reflect.ValueOf(&other).Elem().Field(i); f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Int:
			f.SetInt(7)
		case reflect.Map:
			f.Set(reflect.ValueOf(map[string]string{"k": "v"}))
		default:
			t.Fatalf("a field %s, of which this test makes no value", owner.Field(i).Name)
		}
		name := owner.Field(i).Name
		if last.of("box", "shard", &other) || of("box", "shard", other).of("box", "shard", &driver.Owner{}) {
			t.Errorf("another %s has the same signature", name)
		}
		if signed("box", "shard", &other) == last.text {
			t.Errorf("%s is not signed", name)
		}
	}
}
