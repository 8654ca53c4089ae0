//go:build !race

package repotest

import (
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// Comments must end at column 90, comments at the end of a line of code at column 120,
// and documents at column 100, so that two files fit side by side on a screen. A tab
// counts as four columns. Tables, code and links of documents have no limit.
const (
	commentColumns  = 90
	trailingColumns = 120
	documentColumns = 100
)

// directivePattern matches a comment for a tool, or the expected output of an example.
var directivePattern = regexp.MustCompile(`^//(go:|nolint|line |\s*(Unordered )?[oO]utput:)`)

func TestCommentsEndAtColumn90(t *testing.T) {
	for file, text := range sourceFiles(t, ".go") {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, text, parser.ParseComments|parser.SkipObjectResolution)
		noError(t, err)
		lines := strings.Split(string(text), "\n")
		for _, group := range f.Comments {
			for _, c := range group.List {
				if directivePattern.MatchString(c.Text) {
					break // the rest of the comment is output
				}
				at := fset.Position(c.Pos())
				limit := commentColumns
				if strings.TrimSpace(lines[at.Line-1][:at.Column-1]) != "" {
					limit = trailingColumns
				}
				text := strings.HasPrefix(c.Text, "//") && !strings.HasPrefix(c.Text, "//\t")
				if n := width(lines[at.Line-1]); n > limit && text {
					t.Errorf("%s:%d: the comment ends at column %d; want %d or less", file, at.Line, n, limit)
				}
			}
		}
	}
}

func TestDocumentsEndAtColumn100(t *testing.T) {
	for file, text := range sourceFiles(t, ".md") {
		code := false
		for i, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				code = !code
			}
			unlimited := code || strings.HasPrefix(line, "    ") || strings.HasPrefix(strings.TrimSpace(line), "|") ||
				!strings.Contains(strings.TrimSpace(line), " ") || strings.HasPrefix(line, "[") && strings.Contains(line, "]: ")
			if n := width(line); n > documentColumns && !unlimited {
				t.Errorf("%s:%d: the line ends at column %d; want %d or less", file, i+1, n, documentColumns)
			}
		}
	}
}

func width(line string) int { return utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")) }
