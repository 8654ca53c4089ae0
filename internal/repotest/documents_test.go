//go:build !race

package repotest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/README.md is the only index, so it must list every page.
func TestDocumentsAreAllListedInTheIndex(t *testing.T) {
	const index = "docs/README.md"
	listed := map[string]bool{index: true}
	for _, to := range linksOf(readFile(t, index)) {
		page, _, _ := strings.Cut(to, "#")
		listed[filepath.ToSlash(filepath.Join("docs", page))] = true
	}
	for page := range sourceFiles(t, ".md") {
		if page = filepath.ToSlash(page); strings.HasPrefix(page, "docs/") && !listed[page] {
			t.Errorf("%s does not list %s", index, page)
		}
	}
}

// Messages must name a page by its address, because a user may have no clone.
func TestMessagesNamePagesByTheirAddress(t *testing.T) {
	page := regexp.MustCompile(`(^|[^/\w])docs/[a-z/-]+\.md`)
	for file, text := range sourceFiles(t, ".go") {
		slashed := filepath.ToSlash(file)
		if strings.HasSuffix(slashed, "_test.go") || strings.HasPrefix(slashed, "internal/e2e/") || !bytes.Contains(text, []byte("docs/")) {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, text, 0)
		noError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && page.MatchString(lit.Value) {
				t.Errorf("%s: want https://github.com/pawl-go/pawl/blob/main/docs/...: %s", set.Position(lit.Pos()), lit.Value)
			}
			return true
		})
	}
}
