package repotest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The hints of the backends, which stand in parentheses at the end of their errors, are
// found where they are written, and held against docs/errors/backends.md.

const hintsDocument = "docs/errors/backends.md"

func TestErrorsHaveHintsThatAreAllListedInTheDocuments(t *testing.T) {
	listed := map[string]bool{} // and whether somebody says it
	for line := range strings.SplitSeq(read(t, hintsDocument), "\n") {
		if cells := strings.Split(strings.Trim(line, "| "), " | "); strings.HasPrefix(line, "| ") && cells[0] != "hint" {
			if listed[cells[0]] = false; len(cells) != 2 || cells[1] == "" {
				t.Errorf("%s does not say when this comes: %s", hintsDocument, line)
			}
		}
	}
	found := 0
	for _, folder := range append([]string{".", "internal/redisscript", "quorumlock", "redislock/redlock", "fence"}, moduleFolders()...) {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, h := range hintsOf(t, file) {
				found++
				if _, ok := listed[h]; !ok {
					t.Errorf("%s does not have this hint of %s: %s", hintsDocument, file, h)
				}
				listed[h] = true
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d hints were found: are the patterns right?", found)
	}
	for h, said := range listed {
		if !said {
			t.Errorf("%s has a hint that nobody gives: %s", hintsDocument, h)
		}
	}
}

var (
	// These return a hint first; those take one last.
	givesHints = []string{"advice", "adviceFor", "adviceForConnection"}
	takesHints = []string{"permanent", "broken"}
	isHint     = regexp.MustCompile(`^([Hh]int|\w+Hint|afresh)$`)
)

// hintsOf are the hints that are written in a file.
func hintsOf(t *testing.T, file string) (hints []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	add := func(e ast.Expr) {
		if h, literal := wording(e); literal && h != "" {
			hints = append(hints, h)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if isHint.MatchString(nameOf(n.Key)) {
				add(n.Value)
			}
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if isHint.MatchString(nameOf(to)) && len(n.Rhs) == len(n.Lhs) {
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
				} else if isHint.MatchString(n.Names[i].Name) {
					add(v)
				}
			}
		case *ast.CallExpr:
			if slices.Contains(takesHints, nameOf(n.Fun)) && len(n.Args) > 1 {
				add(n.Args[len(n.Args)-1])
			}
		case *ast.FuncDecl:
			if slices.Contains(givesHints, n.Name.Name) {
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

var verb = regexp.MustCompile(`%[a-z]`)

// wording is what an expression says, with "…" for what is put in, and whether any of it
// is written there.
func wording(e ast.Expr) (text string, literal bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if s, err := strconv.Unquote(e.Value); err == nil {
			return strings.ReplaceAll(s, "`", ""), true
		}
	case *ast.BinaryExpr:
		x, a := wording(e.X)
		y, b := wording(e.Y)
		return x + y, a || b
	case *ast.CallExpr:
		if nameOf(e.Fun) == "Sprintf" {
			text, literal = wording(e.Args[0])
			return verb.ReplaceAllString(text, "…"), literal
		}
	}
	return "…", false
}
