package zero_test

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/mysqllock"
	"github.com/pawl-go/pawl/postgreslock"
	"github.com/pawl-go/pawl/sqlitelock"
)

// abilities are the interfaces that a driver may have beside driver.Driver.
var abilities = []reflect.Type{
	reflect.TypeFor[driver.Signaler](), reflect.TypeFor[driver.Watcher](), reflect.TypeFor[driver.Lister](),
	reflect.TypeFor[driver.LeaseBreaker](), reflect.TypeFor[driver.FenceRaiser](), reflect.TypeFor[driver.AllAcquirer](),
	reflect.TypeFor[driver.Diagnoser](),
}

// faces are the interfaces by which users call a driver.
var faces = append([]reflect.Type{
	reflect.TypeFor[driver.Driver](), reflect.TypeFor[postgreslock.LeaseChecker](), reflect.TypeFor[mysqllock.LeaseChecker](),
	reflect.TypeFor[sqlitelock.LeaseChecker](),
}, abilities...)

// drivers make a driver of each backend, by the names of their packages.
func drivers(made map[string]func() any) map[string]func() any {
	all := map[string]func() any{}
	for name, construct := range made {
		if types[name] == nil {
			all[strings.TrimSuffix(name, ".Driver")] = construct
		}
	}
	return all
}

func TestDriversNeitherPanicNorHangWithZeroValues(t *testing.T) {
	f, all := exported(t), drivers(receivers(t))
	t.Chdir(t.TempDir())
	for _, pkg := range slices.Sorted(maps.Keys(all)) {
		for _, face := range faces {
			for method := range face.Methods() {
				d := reflect.ValueOf(all[pkg]())
				if d.Type().Implements(face) {
					check(t, f, pkg+".Driver."+method.Name, d.MethodByName(method.Name))
				}
			}
		}
	}
}

// The package comment of each backend lists the abilities that driver.As finds, and no
// others.
func TestPackageCommentsListTheAbilities(t *testing.T) {
	all := drivers(receivers(t))
	if len(all) < 10 {
		t.Errorf("%d drivers were found", len(all))
	}
	for _, pkg := range slices.Sorted(maps.Keys(all)) {
		comment, err := os.ReadFile(filepath.Join("..", "..", "..", pkg, "doc.go"))
		noError(t, err)
		_, section, _ := strings.Cut(string(comment), "// # What can its driver do?\n")
		section, _, _ = strings.Cut(section, "// # ")
		var finds []string
		for _, can := range abilities {
			if reflect.TypeOf(all[pkg]()).Implements(can) {
				finds = append(finds, can.String())
			}
		}
		if says := regexp.MustCompile(`driver\.[A-Z]\w+r\b`).FindAllString(section, -1); !slices.Equal(says, append([]string{"driver.Driver"}, finds...)) {
			t.Errorf("the comment of %s lists %q, and driver.As finds %q", pkg, says, finds)
		}
	}
}
