//go:build !race

package repotest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/basictest"
)

// Helpers of all tests.
var noError = basictest.NoError

const modulePath = "github.com/pawl-go/pawl"

// goPackage is the information of go list about a package.
type goPackage struct {
	ImportPath, Name, Dir string
	Imports, Deps         []string
	Standard, DepOnly     bool
}

// goList returns the packages of go.work and all packages that they import, on an
// operating system; "" means this one.
func goList(t *testing.T, system string) map[string]*goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps",
		"-json=ImportPath,Name,Dir,Imports,Deps,Standard,DepOnly", "work")
	cmd.Env = os.Environ()
	if system != "" {
		cmd.Env = append(cmd.Env, "GOOS="+system, "CGO_ENABLED=0")
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(fmt.Errorf("go list: %w\n%s", err, &stderr))
	}
	packages := map[string]*goPackage{}
	for in := json.NewDecoder(bytes.NewReader(out)); in.More(); {
		p := &goPackage{}
		noError(t, in.Decode(p))
		packages[p.ImportPath] = p
	}
	return packages
}

// within reports whether a path is root or below it.
func within(path, root string) bool { return path == root || strings.HasPrefix(path, root+"/") }

// sourceFiles returns the files of the repository that have one of the extensions.
func sourceFiles(t *testing.T, extensions ...string) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "bin" || strings.HasPrefix(d.Name(), ".") && path != "." && path != ".github") {
			return fs.SkipDir
		}
		if d.Type().IsRegular() && slices.Contains(extensions, filepath.Ext(path)) {
			found[path], err = os.ReadFile(path)
		}
		return err
	})
	noError(t, err)
	if len(found) == 0 {
		t.Fatalf("no file with the extension %v", extensions)
	}
	return found
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	noError(t, err)
	return string(text)
}

// folders returns the folders of the packages of go.work; "" is the root's.
func folders(t *testing.T) []string {
	t.Helper()
	var found []string
	for path, p := range goList(t, "") {
		if !p.DepOnly {
			found = append(found, strings.TrimPrefix(strings.TrimPrefix(path, modulePath), "/"))
		}
	}
	slices.Sort(found)
	return found
}

// filesMatching returns the files that match a pattern. Each pattern must match a file.
func filesMatching(t *testing.T, patterns ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no file matches %s: %v", pattern, err)
		}
		for _, file := range files {
			found[file] = readFile(t, file)
		}
	}
	return found
}

// goFiles returns the paths of the files of a package without its tests.
func goFiles(t *testing.T, folder string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s has %d Go files, %v; want one or more", folder, len(paths), err)
	}
	return slices.DeleteFunc(paths, func(path string) bool { return strings.HasSuffix(path, "_test.go") })
}

// parsedFiles returns the files of a package without its tests.
func parsedFiles(t *testing.T, folder string) (files []*ast.File) {
	t.Helper()
	for _, path := range goFiles(t, folder) {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		noError(t, err)
		files = append(files, file)
	}
	return files
}

// specsOf yields the specs of one type in a file: of its types, or of its variables and
// constants. It yields the declaration of each, too.
func specsOf[S ast.Spec](file *ast.File) iter.Seq2[S, *ast.GenDecl] {
	return func(yield func(S, *ast.GenDecl) bool) {
		for _, decl := range file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range group.Specs {
				if s, ok := spec.(S); ok && !yield(s, group) {
					return
				}
			}
		}
	}
}

// An example is an Example function.
type example struct{ name, code, output string }

// examplesIn returns the examples of a folder. name has no prefix Example, and code is
// the body of the function.
func examplesIn(t *testing.T, folder string) (found []example) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	noError(t, err)
	for _, file := range files {
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, file, nil, parser.ParseComments)
		noError(t, err)
		for _, e := range doc.Examples(f) {
			x := example{name: e.Name, output: strings.TrimSpace(e.Output)}
			if body, ok := e.Code.(*ast.BlockStmt); ok {
				source := readFile(t, file)[set.Position(body.Lbrace).Offset+1 : set.Position(body.Rbrace).Offset]
				source, _, _ = strings.Cut(source, "\n\t// Output:")
				x.code = strings.TrimSpace(strings.ReplaceAll(source, "\n\t", "\n"))
			}
			found = append(found, x)
		}
	}
	return found
}
