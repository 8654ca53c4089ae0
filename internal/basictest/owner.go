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

// LargestOwner returns an owner with the largest allowed value in each field.
func LargestOwner() driver.Owner {
	return owner(strings.Repeat("x", driver.MaxLabelSize), math.MaxInt32, driver.MaxLabels)
}

// owner makes an owner with this number and this many labels. Its texts end in tail, and
// have the length of tail if that is longer than their heads.
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
			panic("basictest.owner sets no value for driver.Owner." + name)
		}
	}
	return o
}
