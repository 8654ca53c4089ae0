//go:build !race

package repotest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// rootLayers has the files of the root package from the bottom to the top. A file should
// use only declarations of the files before it, in its own layer and the layers below.
var rootLayers = []struct {
	layer string
	files []string
}{
	{"values", []string{"doc.go", "entry.go", "errors.go", "observer.go", "options.go", "timeouts.go"}},
	{"core: makes, keeps and ends a claim", []string{
		"claim.go", "core.go", "hold.go", "lease.go", "renew.go", "release.go", "health.go", "wait.go",
		"acquire.go", "all_step.go",
	}},
	{"API: what users call", []string{
		"lock.go", "client.go", "namespace.go", "open.go", "close.go", "observer_log.go", "value.go", "do.go", "mutex.go",
		"lockable.go", "rwmutex.go", "force.go", "semaphore.go", "all_close.go", "all_lease.go", "all_wait.go", "all.go", "once.go", "inspect.go", "break.go", "watch.go", "election.go",
		"detach.go",
	}},
}

// maxUpwardUses is the allowed number of uses that point upward. Lower it when there are
// fewer.
const maxUpwardUses = 5

// A use is a name that one file uses and another one declares: a function, type, variable
// or constant of the package, a method, or a field of a struct. Several uses of a name in
// one file count as one.
type use struct{ file, name, declaredIn string }

func TestRootFilesUseTheFilesBelow(t *testing.T) {
	var order []string
	for _, l := range rootLayers {
		order = append(order, l.files...)
	}
	uses, files := rootUses(t)
	for _, file := range files {
		if !slices.Contains(order, file) {
			t.Errorf("%s has no layer in rootLayers", file)
		}
	}
	for _, file := range order {
		if !slices.Contains(files, file) {
			t.Errorf("%s has a layer but does not exist", file)
		}
	}
	var upward []string
	for u := range uses {
		if slices.Index(order, u.file) < slices.Index(order, u.declaredIn) {
			upward = append(upward, fmt.Sprintf("%s uses %s of %s", u.file, u.name, u.declaredIn))
		}
	}
	slices.Sort(upward)
	if len(upward) > maxUpwardUses {
		t.Errorf("of %d uses between files %d point upward, want at most %d:\n%s",
			len(uses), len(upward), maxUpwardUses, strings.Join(upward, "\n"))
	}
}

// rootUses returns the uses between the files of the root package, and the files' names.
func rootUses(t *testing.T) (uses map[use]bool, names []string) {
	t.Helper()
	set := token.NewFileSet()
	var files []*ast.File
	for _, path := range goFiles(t, ".") {
		file, err := parser.ParseFile(set, path, nil, 0)
		noError(t, err)
		files, names = append(files, file), append(names, path)
	}
	config := types.Config{Importer: importer.ForCompiler(set, "gc", exportData(t, "."))}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	root, err := config.Check(modulePath, set, files, info)
	noError(t, err)
	fields := fieldNames(root)
	uses = map[use]bool{}
	for ident, o := range info.Uses {
		name := o.Name()
		switch x := o.(type) {
		case *types.Func:
			o = x.Origin()
			if of := x.Signature().Recv(); of != nil {
				name = types.TypeString(of.Type(), func(*types.Package) string { return "" }) + "." + name
			}
		case *types.Var:
			o = x.Origin()
			if x.IsField() {
				name = fields[o]
			}
		}
		local := o.Parent() != nil && o.Parent() != root.Scope()
		if o.Pkg() != root || local || !o.Pos().IsValid() {
			continue
		}
		u := use{file: set.Position(ident.Pos()).Filename, name: name, declaredIn: set.Position(o.Pos()).Filename}
		if u.file != u.declaredIn {
			uses[u] = true
		}
	}
	return uses, names
}

// fieldNames returns the fields of a package's structs as "struct.field".
func fieldNames(p *types.Package) map[types.Object]string {
	names := map[types.Object]string{}
	for _, name := range p.Scope().Names() {
		if s, ok := p.Scope().Lookup(name).Type().Underlying().(*types.Struct); ok {
			for f := range s.Fields() {
				names[f] = name + "." + f.Name()
			}
		}
	}
	return names
}

// exportData returns the export data of the imported packages, from the build cache.
func exportData(t *testing.T, dir string) importer.Lookup {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(fmt.Errorf("go list: %w\n%s", err, &stderr))
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }
}
