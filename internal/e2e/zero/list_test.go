package zero_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/basictest"
)

// Short names for the helpers of all tests.
var noError = basictest.NoError

var update = flag.Bool("update", false, "write table_test.go")

// instances has the type parameters with which the tests call generic functions.
var instances = map[string]string{"driver.As": "driver.Lister", "fence.Query": "fence.Row"}

// An api has the exported functions, types and methods of all packages for users.
type api struct {
	imports, functions, types []string
	hasMethods                map[string]bool // types with exported methods, or with embedded fields
	panics                    map[string]bool // functions and methods whose comments have the word panic
}

// The table must have every exported function and every type with methods, because the
// tests call only the functions and methods of the table.
func TestTheTableIsComplete(t *testing.T) {
	f := exportedAPI(t)
	var b bytes.Buffer
	fmt.Fprintf(&b, "// Made by go test ./internal/e2e/zero -update.\n\npackage zero_test\n\nimport (\n\t\"reflect\"\n\n")
	for _, i := range f.imports {
		fmt.Fprintf(&b, "\t%q\n", i)
	}
	fmt.Fprintf(&b, ")\n\nvar functions = map[string]any{\n")
	for _, name := range f.functions {
		instance := ""
		if parameter := instances[name]; parameter != "" {
			instance = "[" + parameter + "]"
		}
		fmt.Fprintf(&b, "\t%q: %s%s,\n", name, name, instance)
	}
	fmt.Fprintf(&b, "}\n\nvar types = map[string]reflect.Type{\n")
	for _, name := range f.types {
		fmt.Fprintf(&b, "\t%q: reflect.TypeFor[%s](),\n", name, name)
	}
	b.WriteString("}\n")
	want, err := format.Source(b.Bytes())
	noError(t, err)
	if *update {
		noError(t, os.WriteFile("table_test.go", want, 0o600))
	}
	if have, err := os.ReadFile("table_test.go"); err != nil || !bytes.Equal(have, want) {
		t.Errorf("table_test.go is outdated (%v): go test ./internal/e2e/zero -update", err)
	}
}

// exportedAPI reads the source of the packages.
func exportedAPI(t *testing.T) *api {
	t.Helper()
	f := &api{hasMethods: map[string]bool{}, panics: map[string]bool{}}
	out, err := exec.Command("go", "list", "-json=ImportPath,Name,Dir,GoFiles", "work").Output()
	noError(t, err)
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Name, Dir string
			GoFiles               []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Name == "main" || strings.Contains(p.ImportPath+"/", "/internal/") || strings.Contains(p.ImportPath, "/cmd/") || path.Base(p.ImportPath) == "examples" {
			continue
		}
		f.imports = append(f.imports, p.ImportPath)
		for _, file := range p.GoFiles {
			parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.ParseComments|parser.SkipObjectResolution)
			noError(t, err)
			f.read(t, p.Name, parsed)
		}
	}
	f.types = slices.DeleteFunc(f.types, func(name string) bool { return !f.hasMethods[name] })
	slices.Sort(f.functions)
	slices.Sort(f.types)
	return f
}

func (f *api) read(t *testing.T, pkg string, file *ast.File) {
	t.Helper()
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if !d.Name.IsExported() {
				continue
			}
			name := pkg + "." + d.Name.Name
			if d.Recv != nil {
				typeName := pkg + "." + receiver(d.Recv.List[0].Type)
				f.hasMethods[typeName], name = true, typeName+"."+d.Name.Name
			} else if f.functions = append(f.functions, name); d.Type.TypeParams != nil && instances[name] == "" {
				t.Errorf("%s is generic: add it to instances", name)
			}
			f.panics[name] = strings.Contains(d.Doc.Text(), "panic")
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				s, ok := spec.(*ast.TypeSpec)
				if !ok || !s.Name.IsExported() {
					continue
				}
				if _, is := s.Type.(*ast.InterfaceType); is || s.Assign.IsValid() {
					continue // the table has the type of an alias
				}
				if s.TypeParams != nil {
					t.Errorf("%s.%s is generic: the test cannot write it into the table", pkg, s.Name)
				}
				f.types = append(f.types, pkg+"."+s.Name.Name)
				if body, ok := s.Type.(*ast.StructType); ok {
					embeds := slices.ContainsFunc(body.Fields.List, func(x *ast.Field) bool { return len(x.Names) == 0 })
					f.hasMethods[pkg+"."+s.Name.Name] = embeds || f.hasMethods[pkg+"."+s.Name.Name]
				}
			}
		}
	}
}

// receiver returns the name of a receiver's type.
func receiver(e ast.Expr) string {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return "?"
}
