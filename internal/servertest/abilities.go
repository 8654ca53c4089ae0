package servertest

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/driver"
)

// Abilities are the optional interfaces of a driver.
var Abilities = []reflect.Type{
	reflect.TypeFor[driver.Signaler](), reflect.TypeFor[driver.Watcher](), reflect.TypeFor[driver.Lister](),
	reflect.TypeFor[driver.LeaseBreaker](), reflect.TypeFor[driver.FenceRaiser](), reflect.TypeFor[driver.AllAcquirer](),
	reflect.TypeFor[driver.Diagnoser](),
}

// ListsAbilities requires that the package comment in a folder lists the abilities that
// driver.As finds in a driver, and no others.
func ListsAbilities(tb TB, folder string, d any) {
	tb.Helper()
	comment, err := os.ReadFile(filepath.Join(folder, "doc.go"))
	if err != nil {
		tb.Fatalf("%v", err)
	}
	_, section, _ := strings.Cut(string(comment), "// # What can its driver do?\n")
	section, _, _ = strings.Cut(section, "// # ")
	want := []string{"driver.Driver"}
	for _, can := range Abilities {
		if reflect.TypeOf(d).Implements(can) {
			want = append(want, can.String())
		}
	}
	if listed := regexp.MustCompile(`driver\.[A-Z]\w+r\b`).FindAllString(section, -1); !slices.Equal(listed, want) {
		tb.Errorf("the comment in %s lists %q, but driver.As finds %q", folder, listed, want)
	}
}
