package redisscript

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"go/types"
	"strings"
	"testing"
)

// A field is a field of a struct. The comment has no line ends.
type field struct{ typ, comment string }

// options returns the fields of a struct type in a file.
func options(t *testing.T, path, name string) map[string]field {
	t.Helper()
	f, err := parser.ParseFile(gotoken.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]field{}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != name {
			return true
		}
		for _, x := range spec.Type.(*ast.StructType).Fields.List {
			fields[x.Names[0].Name] = field{types.ExprString(x.Type), strings.Join(strings.Fields(x.Doc.Text()), " ")}
		}
		return false
	})
	return fields
}

func TestBothPackagesDocumentTheSameOptions(t *testing.T) {
	common := options(t, "options.go", "Options")
	if len(common) != 5 {
		t.Fatalf("the common options are %v", common)
	}
	one, other := options(t, "../../redislock/options.go", "Options"), options(t, "../../goredislock/options.go", "Options")
	for name, want := range common {
		a, b := one[name], other[name]
		same := strings.HasPrefix(a.comment, b.comment) || strings.HasPrefix(b.comment, a.comment) // one may be longer
		if a.typ != want.typ || b.typ != want.typ || a.comment == "" || b.comment == "" || !same {
			t.Errorf("%s is %+v and %+v, want the type %s, and one comment to be a prefix of the other", name, a, b, want.typ)
		}
	}
}
