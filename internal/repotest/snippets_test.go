//go:build !race

package repotest

import (
	"go/format"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fenced matches a block of code in a document: its language, and the code.
var fenced = regexp.MustCompile("(?sm)^```(\\w*)\n(.*?)^```$")

// pairColumn is the column where the right side of a pair in docs/coming-from.md begins.
const pairColumn = 47

// The Go code in a document parses, also after an author has wrapped the document.
func TestTheGoOfDocumentsIsGo(t *testing.T) {
	imports := regexp.MustCompile(`(?s)^import \(.*?\n\)\n`) // the rest is the body of a function
	for file, text := range sources(t, ".md") {
		for _, block := range fenced.FindAllSubmatch(text, -1) {
			if code := imports.ReplaceAllString(string(block[2]), ""); string(block[1]) == "go" && !isPaired(code) {
				if _, err := format.Source([]byte(code)); err != nil {
					t.Errorf("%s: %v in\n%s", file, err, code)
				}
			}
		}
	}
}

// docs/coming-from.md shows Pawl's side of each pair as it stands in
// example_coming_test.go, except comments and white space.
func TestComingFromShowsWhatIsCompiled(t *testing.T) {
	comment, space := regexp.MustCompile(`//.*`), regexp.MustCompile(`\s+`)
	plain := func(code string) string {
		return space.ReplaceAllString(comment.ReplaceAllString(code, ""), "")
	}
	compiled, shown := plain(read(t, "example_coming_test.go")), 0
	for _, block := range fenced.FindAllStringSubmatch(read(t, "docs/coming-from.md"), -1) {
		code := block[2]
		if isPaired(code) {
			lines := strings.Split(code, "\n")
			for i, line := range lines {
				lines[i] = line[min(pairColumn, len(line)):]
			}
			code = strings.Join(lines, "\n")
		}
		if strings.HasPrefix(code, "pawl ") {
			continue // a pair of commands; cmd/pawl/testdata has their scripts
		}
		shown++
		if !strings.Contains(compiled, plain(code)) {
			t.Errorf("docs/coming-from.md shows what is not compiled:\n%s", code)
		}
	}
	if shown < 8 {
		t.Errorf("%d blocks were found: is the pattern right?", shown)
	}
}

func isPaired(code string) bool {
	return len(code) > pairColumn && !strings.Contains(code[:pairColumn], "\n") && code[pairColumn-1] == ' '
}

// docs/uses.md shows examples that run, and below each its output.
func TestUsesShowsExamplesThatRun(t *testing.T) {
	examples := map[string]string{} // what each prints, by its code
	for _, folder := range []string{".", "cronlock", "fence", "otellock"} {
		for _, e := range examplesIn(t, folder) {
			examples[e.code] = e.output
		}
	}
	page := read(t, "docs/uses.md")
	blocks, shown := fenced.FindAllStringSubmatch(page, -1), 0
	for i, block := range blocks {
		if block[1] != "go" {
			continue
		}
		shown++
		prints, ok := examples[strings.TrimSpace(block[2])]
		switch {
		case !ok:
			t.Errorf("the page shows what is no example that runs:\n%s", block[2])
		case prints != "" && (i+1 == len(blocks) || strings.TrimSpace(blocks[i+1][2]) != prints):
			t.Errorf("the page does not show what this prints:\n%s\nIt prints:\n%s", block[2], prints)
		}
	}
	if shown < 10 {
		t.Errorf("%d examples were found: is the pattern right?", shown)
	}
}

// The README shows the body of an example, and before it the imports that are not
// obvious.
func TestREADMEShowsTheExample(t *testing.T) {
	block := regexp.MustCompile("(?s)```go\n(import \\(\n(.*?)\\)\n\n)?(.*?)```").FindStringSubmatch(read(t, "README.md"))
	if block == nil {
		t.Fatal("README.md has no block of Go")
	}
	source := read(t, "sqlitelock/example_test.go")
	for _, path := range regexp.MustCompile(`"[^"]+"`).FindAllString(block[2], -1) {
		if !strings.Contains(source, path) {
			t.Errorf("README.md imports %s, sqlitelock/example_test.go does not", path)
		}
	}
	if !slices.ContainsFunc(examplesIn(t, "sqlitelock"), func(e example) bool { return e.code == strings.TrimSpace(block[3]) }) {
		t.Errorf("README.md shows what is no example of sqlitelock:\n%s", block[3])
	}
}
