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

// Each package has an example of the first calls of a reader: each function that opens or
// makes something. The root has one also for each method of a lock, and for the methods
// of the client for operators.
func TestWhatAReaderBeginsWithHasAnExample(t *testing.T) {
	folders := []string{".", "locktable", "quorumlock", "cronlock", "fence", "otellock"}
	for _, b := range backends.All {
		folders = append(folders, b.Folder)
	}
	for _, folder := range folders {
		var shown []string
		for _, e := range examplesIn(t, folder) {
			shown = append(shown, e.name)
		}
		for _, name := range beginnings(parsedFiles(t, folder)) {
			of, _, _ := strings.Cut(name, "_")
			does := []string{name, of, strings.TrimPrefix(name, "New")}
			if !slices.ContainsFunc(does, func(n string) bool { return slices.Contains(shown, n) }) {
				t.Errorf("%s: no Example%s", folder, name)
			}
		}
	}
}

// beginnings returns the names that the examples need: New, or Mutex_Lock.
func beginnings(files []*ast.File) (names []string) {
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
			case of == "" && fn.Recv == nil && (strings.HasPrefix(name, "New") || name == "Open" || name == "Track"):
				names = append(names, name)
			case of == "Mutex", of == "RWMutex", of == "Semaphore", of == "Client" && slices.Contains(client, name):
				names = append(names, of+"_"+name)
			}
		}
	}
	return names
}
