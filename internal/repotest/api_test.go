//go:build !race

package repotest

import (
	"go/ast"
	"go/types"
	"strings"
	"testing"
)

// functionTypes has the required types of functions. A backend need not have them.
var functionTypes = map[string]string{
	"Open":   "func(ctx context.Context, rawURL string) (driver.Driver, error)",
	"Schema": "func(o *Options) (string, error)",
}

// A backend must document all that it exports. An embedded type of another package would
// export methods that go doc does not show. New and Open return a driver.Driver, so a
// backend need not export its driver.
func TestBackendsExportNoUndocumentedMethods(t *testing.T) {
	for _, folder := range append([]string{"memlock", "quorumlock"}, moduleFolders()...) {
		for _, file := range parsedFiles(t, folder) {
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok {
					checkFunctionType(t, folder, f)
				}
			}
			for s := range specsOf[*ast.TypeSpec](file) {
				checkEmbedded(t, folder, s)
				if s.Name.Name == "Driver" {
					t.Errorf("%s exports its Driver: New and Open return a driver.Driver", folder)
				}
			}
		}
	}
}

func checkFunctionType(t *testing.T, folder string, f *ast.FuncDecl) {
	t.Helper()
	if f.Recv != nil {
		return
	}
	if want := functionTypes[f.Name.Name]; want != "" && types.ExprString(f.Type) != want {
		t.Errorf("%s.%s is %s; want %s", folder, f.Name.Name, types.ExprString(f.Type), want)
	}
}

func checkEmbedded(t *testing.T, folder string, s *ast.TypeSpec) {
	t.Helper()
	body, ok := s.Type.(*ast.StructType)
	if !ok || !s.Name.IsExported() {
		return
	}
	for _, field := range body.Fields.List {
		if len(field.Names) > 0 {
			continue
		}
		if embedded := strings.TrimPrefix(types.ExprString(field.Type), "*"); strings.Contains(embedded, ".") || ast.IsExported(embedded) {
			t.Errorf("%s.%s embeds %s, which exports undocumented methods", folder, s.Name.Name, embedded)
		}
	}
}
