//go:build !race

package repotest

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// go doc shows no fields of an alias, so the comment of each alias in the root must name
// all fields.
func TestAliasesNameTheirFields(t *testing.T) {
	fields := map[string][]string{} // by the name of a struct of package driver
	eachType(t, "driver", func(spec *ast.TypeSpec, _ string) {
		s, ok := spec.Type.(*ast.StructType)
		if !ok {
			return
		}
		for _, f := range s.Fields.List {
			for _, name := range f.Names {
				if name.IsExported() {
					fields[spec.Name.Name] = append(fields[spec.Name.Name], name.Name)
				}
			}
		}
	})
	aliases := 0
	eachType(t, ".", func(spec *ast.TypeSpec, comment string) {
		aliased, ok := spec.Type.(*ast.SelectorExpr)
		if !ok || !spec.Assign.IsValid() {
			return
		}
		aliases++
		for _, field := range fields[aliased.Sel.Name] {
			if !regexp.MustCompile(`\b` + field + `\b`).MatchString(comment) {
				t.Errorf("the comment of %s does not name its field %s", spec.Name.Name, field)
			}
		}
	})
	if aliases < 8 {
		t.Errorf("only %d aliases were found", aliases)
	}
}

// The package comment must name each error that a program may branch on.
func TestThePackageCommentNamesEachError(t *testing.T) {
	doc := readFile(t, "doc.go")
	for _, name := range regexp.MustCompile(`(?m)^	(Err[A-Z]\w+) += `).FindAllStringSubmatch(readFile(t, "errors.go"), -1) {
		if !strings.Contains(doc, "["+name[1]+"]") {
			t.Errorf("doc.go does not name %s", name[1])
		}
	}
}

// eachType calls f for each type of a package, with its comment.
func eachType(t *testing.T, folder string, f func(spec *ast.TypeSpec, comment string)) {
	t.Helper()
	for _, file := range parsedFiles(t, folder) {
		for spec, group := range specsOf[*ast.TypeSpec](file) {
			f(spec, group.Doc.Text()+spec.Doc.Text())
		}
	}
}
