package basictest

import (
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/driver"
)

// FullOwner returns an owner with a value in each field.
func FullOwner() driver.Owner { return owner("", 17, 2) }

// LargestOwner returns the owner with the largest value in each field that a claim may
// have.
func LargestOwner() driver.Owner {
	return owner(strings.Repeat("x", driver.MaxLabelSize), math.MaxInt32, driver.MaxLabels)
}

// owner makes an owner of texts that end in tail and are no longer than a label, with
// that number and that many labels.
func owner(tail string, number int64, labels int) (o driver.Owner) {
	text := func(head string) string { return (head + tail)[:max(len(head), len(tail))] }
	v := reflect.ValueOf(&o).Elem()
	for i := range v.NumField() {
		switch name := v.Type().Field(i).Name; v.Field(i).Kind() {
		case reflect.String:
			v.Field(i).SetString(text("every " + name))
		case reflect.Int:
			v.Field(i).SetInt(number)
		case reflect.Map:
			all := map[string]string{}
			for n := range labels {
				all[text("key "+strconv.Itoa(n))] = text("label")
			}
			v.Field(i).Set(reflect.ValueOf(all))
		default:
			panic("driver.Owner." + name + ": give it a value here")
		}
	}
	return o
}
