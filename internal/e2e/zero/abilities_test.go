package zero_test

import (
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/mysqllock"
	"github.com/pawl-go/pawl/postgreslock"
	"github.com/pawl-go/pawl/sqlitelock"
)

// interfaces are the interfaces by which users call a driver.
var interfaces = append([]reflect.Type{
	reflect.TypeFor[driver.Driver](), reflect.TypeFor[postgreslock.LeaseChecker](), reflect.TypeFor[mysqllock.LeaseChecker](),
	reflect.TypeFor[sqlitelock.LeaseChecker](),
}, servertest.Abilities...)

// drivers returns the constructors of drivers, by their packages.
func drivers(constructors map[string]func() any) map[string]func() any {
	all := map[string]func() any{}
	for name, construct := range constructors {
		if types[name] == nil {
			all[strings.TrimSuffix(name, ".Driver")] = construct
		}
	}
	return all
}

func TestDriversDoNotPanicOrHangWithZeroValues(t *testing.T) {
	f, all := exportedAPI(t), drivers(receivers(t))
	t.Chdir(t.TempDir())
	for _, pkg := range slices.Sorted(maps.Keys(all)) {
		for _, i := range interfaces {
			for method := range i.Methods() {
				d := reflect.ValueOf(all[pkg]())
				if d.Type().Implements(i) {
					check(t, f, pkg+".Driver."+method.Name, d.MethodByName(method.Name))
				}
			}
		}
	}
}

// Package doctest checks the package comments of the other backends.
func TestPackageCommentsListTheAbilities(t *testing.T) {
	all := drivers(receivers(t))
	if len(all) < 10 {
		t.Errorf("only %d drivers were found", len(all))
	}
	for pkg, construct := range all {
		servertest.ListsAbilities(t, filepath.Join("..", "..", "..", pkg), construct())
	}
}
