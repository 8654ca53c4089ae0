//go:build !race

package repotest

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/backends"
)

// Each package must have an example of each function that opens or makes something. The
// root must also have one of each method of a lock, and of some methods of the client.
func TestConstructorsAndLockMethodsHaveExamples(t *testing.T) {
	folders := []string{".", "locktable", "quorumlock", "cronlock", "fence", "otellock"}
	for _, b := range backends.All {
		folders = append(folders, b.Folder)
	}
	for _, folder := range folders {
		var shown []string
		for _, e := range examplesIn(t, folder) {
			shown = append(shown, e.name)
		}
		for _, name := range namesThatNeedExamples(parsedFiles(t, folder)) {
			of, _, _ := strings.Cut(name, "_")
			accepted := []string{name, of, strings.TrimPrefix(name, "New")}
			if !slices.ContainsFunc(accepted, func(n string) bool { return slices.Contains(shown, n) }) {
				t.Errorf("%s: no Example%s", folder, name)
			}
		}
	}
}

// namesThatNeedExamples returns names such as New or Mutex_Lock.
func namesThatNeedExamples(files []*ast.File) (names []string) {
	client := []string{"Inspect", "List", "Break", "Shutdown", "Election", "Once", "Attach", "Watch"}
	for _, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !fn.Name.IsExported() {
				continue
			}
			name := fn.Name.Name
			of := ""
			if fn.Recv != nil {
				of = strings.TrimPrefix(types.ExprString(fn.Recv.List[0].Type), "*")
			}
			switch {
			case of == "" && (strings.HasPrefix(name, "New") || name == "Open" || name == "Track"):
				names = append(names, name)
			case of == "Mutex", of == "RWMutex", of == "Semaphore", of == "Client" && slices.Contains(client, name):
				names = append(names, of+"_"+name)
			}
		}
	}
	return names
}
