package redisscript

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// fieldComments returns the comments of the fields of the struct in a file, without line
// ends.
func fieldComments(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.StructType); ok {
			for _, x := range s.Fields.List {
				all[x.Names[0].Name] = strings.Join(strings.Fields(x.Doc.Text()), " ")
			}
		}
		return true
	})
	return all
}

// The test compares the comments only, because the compiler compares the types.
func TestBothPackagesDocumentTheSameOptions(t *testing.T) {
	common := fieldComments(t, "options.go")
	if len(common) != 5 {
		t.Fatalf("the common options are %v", common)
	}
	redislock, goredislock := fieldComments(t, "../../redislock/options.go"), fieldComments(t, "../../goredislock/options.go")
	for name := range common {
		a, b := redislock[name], goredislock[name]
		same := strings.HasPrefix(a, b) || strings.HasPrefix(b, a) // one comment may be longer
		if a == "" || b == "" || !same {
			t.Errorf("%s is documented as\n%q and\n%q; want one comment to be a prefix of the other", name, a, b)
		}
	}
}
