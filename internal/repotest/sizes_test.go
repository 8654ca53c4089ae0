//go:build !race

package repotest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const ceilingsFile = "internal/repotest/testdata/ceilings.txt"

// notProduct matches the Go files besides tests that no user runs: kits, suites, test
// servers, benchmarks, examples, and tools that draw or check documents.
var notProduct = regexp.MustCompile(`_kit\.go$|^(bench|drivertest|examples|dashboard/browser|otellock/dashboard)/|` +
	`^internal/(e2e|repotest|testservers|tools|pictures|[a-z]+test|firstlock|swaplock|timeshift)/`)

// TestSizesStayBelowTheirCeilings compares the size of the project with its ceilings. A
// commit that makes the project smaller lowers a ceiling. A commit that raises one must
// explain why.
func TestSizesStayBelowTheirCeilings(t *testing.T) {
	count := map[string]int{}
	for file, text := range sourceFiles(t, ".go") {
		file = filepath.ToSlash(file)
		lines := bytes.Count(text, []byte("\n"))
		switch {
		case strings.HasSuffix(file, "_test.go"):
			count["test-lines"] += lines
		case notProduct.MatchString(file):
			count["kit-lines"] += lines
		default:
			count["product-lines"] += lines
			count["exported-names"] += exportedNames(t, file, text)
		}
	}
	ceiling := map[string]int{}
	for line := range strings.Lines(readFile(t, ceilingsFile)) {
		var name string
		var n int
		if _, err := fmt.Sscan(line, &name, &n); err != nil {
			t.Fatalf("%s: %q: %v", ceilingsFile, line, err)
		}
		ceiling[name] = n
	}
	for name, n := range count {
		t.Logf("%s: %d", name, n)
		const slack = 100 // so that not every commit changes the file
		switch limit := ceiling[name]; {
		case n > limit:
			t.Errorf("%d %s; the ceiling in %s is %d: is there something to delete?", n, name, ceilingsFile, limit)
		case n < limit-slack:
			t.Errorf("%d %s, but the ceiling in %s is %d: lower it", n, name, ceilingsFile, limit)
		}
	}
}

// exportedNames counts the names that a file exports to users: names of the package,
// methods, and fields of structs. It ignores packages below internal/ and cmd/.
func exportedNames(t *testing.T, file string, text []byte) (n int) {
	t.Helper()
	if strings.HasPrefix(file, "internal/") || strings.HasPrefix(file, "cmd/") || strings.Contains(file, "/internal/") {
		return 0
	}
	f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
	noError(t, err)
	count := func(names ...*ast.Ident) {
		for _, name := range names {
			if name.IsExported() {
				n++
			}
		}
	}
	for _, decl := range f.Decls {
		if d, ok := decl.(*ast.FuncDecl); ok {
			count(d.Name)
		}
	}
	for s := range specsOf[*ast.ValueSpec](f) {
		count(s.Names...)
	}
	for s := range specsOf[*ast.TypeSpec](f) {
		count(s.Name)
		if body, ok := s.Type.(*ast.StructType); ok && s.Name.IsExported() {
			for _, field := range body.Fields.List {
				count(field.Names...)
			}
		}
	}
	return n
}
