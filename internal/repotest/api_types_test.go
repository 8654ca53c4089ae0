//go:build !race

package repotest

import (
	"go/ast"
	"go/types"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// opaqueTypes are the types of package driver that a program passes on without using
// their fields.
var opaqueTypes = []string{"driver.Driver", "driver.Lease"}

// unstablePackages are the packages whose API may change in any release, see
// CONTRIBUTING.md.
var unstablePackages = []string{"driver", "drivertest", "locktable"}

// The root must have an alias for a type of package driver that programs make or read, so
// that apidiff compares its fields. CONTRIBUTING.md explains why opaqueTypes have none.
func TestThePublicAPINamesFewTypesOfDrivers(t *testing.T) {
	var aliases []string
	for _, file := range parsedFiles(t, ".") {
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.TypeSpec); ok && s.Assign.IsValid() {
				aliases = append(aliases, types.ExprString(s.Type))
			}
			return true
		})
	}
	folders := []string{"."}
	for file := range sourceFiles(t, ".go") {
		if folder := filepath.Dir(file); !slices.Contains(folders, folder) && isForUsers(t, folder) {
			folders = append(folders, folder)
		}
	}
	if len(folders) < 15 || len(aliases) < 8 {
		t.Fatalf("only %d folders and %d aliases were found", len(folders), len(aliases))
	}
	for _, folder := range folders {
		for _, file := range parsedFiles(t, folder) {
			for _, name := range exposedTypes(file) {
				if !slices.Contains(opaqueTypes, name) && !slices.Contains(aliases, name) {
					t.Errorf("%s exposes %s, which is for authors of backends only", folder, name)
				}
			}
		}
	}
}

// isForUsers reports whether a folder has a package that users import.
func isForUsers(t *testing.T, folder string) bool {
	t.Helper()
	for _, path := range goFiles(t, folder) {
		if regexp.MustCompile(`(?m)^package main$`).MatchString(readFile(t, path)) {
			return false
		}
	}
	return !regexp.MustCompile(`(^|/)(internal|examples|testdata|bench|cmd|browser)(/|$)`).MatchString(filepath.ToSlash(folder)) &&
		!slices.ContainsFunc(unstablePackages, func(p string) bool { return within(folder, p) })
}

// exposedTypes returns the types of driver, locktable and swap in the exported functions
// and types of a file.
func exposedTypes(file *ast.File) (names []string) {
	collect := func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if of, ok := s.X.(*ast.Ident); ok && slices.Contains([]string{"driver", "locktable", "swap"}, of.Name) {
					names = append(names, types.ExprString(s))
				}
			}
			return true
		})
	}
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Name.IsExported() && (f.Recv == nil || ast.IsExported(receiver(f.Recv.List[0].Type))) {
			collect(f.Type)
		}
	}
	for s := range specsOf[*ast.TypeSpec](file) {
		if s.Name.IsExported() && !s.Assign.IsValid() {
			exposedFields(s.Type, collect)
		}
	}
	return names
}

// exposedFields calls f for the exported fields and methods of a type.
func exposedFields(e ast.Expr, f func(ast.Node)) {
	var fields *ast.FieldList
	switch e := e.(type) {
	case *ast.StructType:
		fields = e.Fields
	case *ast.InterfaceType:
		fields = e.Methods
	default:
		f(e)
		return
	}
	for _, field := range fields.List {
		if len(field.Names) == 0 || field.Names[0].IsExported() {
			f(field.Type)
		}
	}
}
