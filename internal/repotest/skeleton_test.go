//go:build !race

package repotest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// skeleton is the names of a backend's files, and the declarations in each, in the order
// of reading. A "T.F" is a method. A declaration that only one engine has stands in a
// file named for it, or after those of the skeleton. mongolock is the example to follow.
var skeleton = []struct {
	file     string
	declares []string
}{
	{"doc.go", nil}, // the package comment
	{"options.go", []string{"Options", "Options.withDefaults"}},
	{"open.go", []string{"lockDriver", "New", "NewDB", "Open", "OpenFile", "openURL", "build"}},
	{"url.go", []string{"urlForm", "parsed", "parseURL", "urlParameters"}},
	{"store.go", []string{
		"store", "newStore", "store.Time", "store.Load", "store.Properties", "store.DelaysWrites", "store.Close",
		"sender", "sender.Run",
	}},
	{"config.go", []string{"store.checkConfig"}}, // what makes an engine unfit for locks
	{"signals.go", []string{"sender.Receive"}},
	{"poll.go", []string{ // polls where the engine pushes nothing
		"newPoller", "store.pollClaims", "listener.pollClaims", "store.pollSignals", "table.pollSignals",
	}},
	{"watch.go", []string{"watch", "store.Watch"}}, // clients that follow a name
	{"errors.go", []string{"advice"}},
	{"doctor.go", []string{"lockDriver.Diagnose", "sender.Servers"}},
	{"schema.go", []string{"schema", "Schema"}},
	{"lease_check.go", []string{"CheckLease", "CheckLeaseSQL", "LeaseChecker", "lockDriver.CheckLease", "lockDriver.CheckLeaseSQL"}},
}

// unordered lists the backends whose declarations are not yet in the order of skeleton.
var unordered = []string{"mysqllock", "postgreslock", "redislock"}

// everywhere lists the files that each backend has.
var everywhere = []string{"doc.go", "options.go", "open.go", "store.go"}

func TestBackendsHaveTheSameFiles(t *testing.T) {
	for _, folder := range append([]string{"memlock"}, moduleFolders()...) {
		checkSkeleton(t, folder)
	}
}

func checkSkeleton(t *testing.T, folder string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	noError(t, err)
	var files []string
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file := filepath.Base(path)
		files = append(files, file)
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		noError(t, err)
		if parsed.Doc != nil && file != "doc.go" {
			t.Errorf("%s has the package's comment, whose place is doc.go", path)
		}
		last := ""
		for _, name := range declarations(parsed) {
			for _, s := range skeleton {
				switch at := slices.Index(s.declares, name); {
				case at < 0:
				case file != s.file:
					t.Errorf("%s declares %s, whose place is %s", path, name, s.file)
				case at < slices.Index(s.declares, last) && !slices.Contains(unordered, folder):
					t.Errorf("%s declares %s after %s, and mongolock before", path, name, last)
				default:
					last = name
				}
			}
		}
	}
	for _, file := range everywhere {
		if !slices.Contains(files, file) {
			t.Errorf("%s has no %s", folder, file)
		}
	}
	if slices.Contains(files, filepath.Base(folder)+".go") {
		t.Errorf("%s has a file that is named for nothing but the package", folder)
	}
}

// declarations returns the names that a file declares; of a group, the first.
func declarations(file *ast.File) (names []string) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				of := d.Recv.List[0].Type
				if pointer, ok := of.(*ast.StarExpr); ok {
					of = pointer.X
				}
				if ident, ok := of.(*ast.Ident); ok {
					name = ident.Name + "." + name
				}
			}
			names = append(names, name)
		case *ast.GenDecl:
			switch first := d.Specs[0].(type) {
			case *ast.TypeSpec:
				names = append(names, first.Name.Name)
			case *ast.ValueSpec:
				names = append(names, first.Names[0].Name)
			}
		}
	}
	return names
}
