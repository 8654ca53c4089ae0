//go:build !race

package repotest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The backends put hints in parentheses at the end of their errors. These tests find the
// hints in the source, and compare them with the tables of the documents whose first
// column is "hint".

func TestErrorsHaveHintsThatAreAllListedInTheDocuments(t *testing.T) {
	listed := map[string]bool{} // the hints of the documents; true if the source contains the hint
	for page, text := range filesMatching(t, "docs/backends/*.md", "docs/errors.md", "docs/fencing.md") {
		hints := false // whether line is in a table of hints
		for line := range strings.SplitSeq(text, "\n") {
			switch cells := strings.Split(strings.Trim(line, "| "), " | "); {
			case !strings.HasPrefix(line, "|"):
				hints = false
			case cells[0] == "hint":
				hints = true
			case hints && strings.HasPrefix(line, "| "):
				if listed[cells[0]] = false; len(cells) != 2 || cells[1] == "" {
					t.Errorf("%s does not explain the hint: %s", page, line)
				}
			}
		}
	}
	found := 0
	for _, folder := range append([]string{".", "internal/engine", "internal/redisscript", "quorumlock", "redislock/redlock", "fence"}, moduleFolders()...) {
		for _, file := range goFiles(t, folder) {
			for _, h := range hintsOf(t, file) {
				found++
				if _, ok := listed[h]; !ok {
					t.Errorf("no page of docs/backends has this hint of %s: %s", file, h)
				}
				listed[h] = true
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d hints were found: are the patterns right?", found)
	}
	for h, inSource := range listed {
		if !inSource {
			t.Errorf("the documents have a hint that no backend gives: %s", h)
		}
	}
}

var (
	// The first functions return a hint first; the second ones take a hint last.
	returnsHintFirst = []string{"advice", "adviceFor", "adviceForConnection", "CertificateHint"}
	takesHintLast    = []string{"permanentError"}
	hintName         = regexp.MustCompile(`^([Hh]int|\w+Hint|afresh)$`)
)

// hintsOf returns the hints in a source file.
func hintsOf(t *testing.T, file string) (hints []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	noError(t, err)
	add := func(e ast.Expr) {
		if h, literal := literalText(e); literal && h != "" {
			hints = append(hints, h)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if hintName.MatchString(nameOf(n.Key)) {
				add(n.Value)
			}
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if hintName.MatchString(nameOf(to)) && len(n.Rhs) == len(n.Lhs) {
					add(n.Rhs[i])
				}
			}
		case *ast.ValueSpec:
			for i, v := range n.Values {
				if table, ok := v.(*ast.CompositeLit); ok && n.Names[i].Name == "hints" {
					for _, row := range table.Elts {
						cells := row.(*ast.CompositeLit).Elts
						add(cells[len(cells)-1])
					}
				} else if hintName.MatchString(n.Names[i].Name) {
					add(v)
				}
			}
		case *ast.CallExpr:
			if slices.Contains(takesHintLast, nameOf(n.Fun)) && len(n.Args) > 1 {
				add(n.Args[len(n.Args)-1])
			}
		case *ast.FuncDecl:
			if slices.Contains(returnsHintFirst, n.Name.Name) {
				ast.Inspect(n, func(n ast.Node) bool {
					if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) > 0 {
						add(r.Results[0])
					}
					return true
				})
			}
		}
		return true
	})
	return hints
}

func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

var formatVerb = regexp.MustCompile(`%[a-z]`)

// literalText returns the text of an expression, with "…" for inserted values, and
// whether the expression contains a literal.
func literalText(e ast.Expr) (text string, literal bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if s, err := strconv.Unquote(e.Value); err == nil {
			return strings.ReplaceAll(s, "`", ""), true
		}
	case *ast.BinaryExpr:
		x, a := literalText(e.X)
		y, b := literalText(e.Y)
		return x + y, a || b
	case *ast.CallExpr:
		if nameOf(e.Fun) == "Sprintf" {
			text, literal = literalText(e.Args[0])
			return formatVerb.ReplaceAllString(text, "…"), literal
		}
	}
	return "…", false
}
