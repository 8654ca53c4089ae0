//go:build !race

package repotest

import (
	"go/format"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// codeBlock matches a block of code in a document: its language, and the code.
var codeBlock = regexp.MustCompile("(?sm)^```(\\w*)\n(.*?)^```$")

// pairColumn is the first column of the right side of a pair in docs/coming-from.md.
const pairColumn = 47

// The Go code in documents must parse, even after an author has wrapped the document.
func TestGoCodeInDocumentsParses(t *testing.T) {
	imports := regexp.MustCompile(`(?s)^import \(.*?\n\)\n`) // the rest is the body of a function
	for file, text := range sourceFiles(t, ".md") {
		for _, block := range codeBlock.FindAllSubmatch(text, -1) {
			if code := imports.ReplaceAllString(string(block[2]), ""); string(block[1]) == "go" && !isPairOfCode(code) {
				if _, err := format.Source([]byte(code)); err != nil {
					t.Errorf("%s: %v in\n%s", file, err, code)
				}
			}
		}
	}
}

// Pawl's side of each pair in docs/coming-from.md must be in example_coming_test.go,
// without comments and white space.
func TestComingFromShowsCompiledCode(t *testing.T) {
	comment, space := regexp.MustCompile(`//.*`), regexp.MustCompile(`\s+`)
	plain := func(code string) string {
		return space.ReplaceAllString(comment.ReplaceAllString(code, ""), "")
	}
	compiled, shown := plain(readFile(t, "example_coming_test.go")), 0
	for _, block := range codeBlock.FindAllStringSubmatch(readFile(t, "docs/coming-from.md"), -1) {
		code := block[2]
		if isPairOfCode(code) {
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
			t.Errorf("example_coming_test.go does not have this code of docs/coming-from.md:\n%s", code)
		}
	}
	if shown < 8 {
		t.Errorf("only %d blocks were found: is the pattern right?", shown)
	}
}

func isPairOfCode(code string) bool {
	return len(code) > pairColumn && !strings.Contains(code[:pairColumn], "\n") && code[pairColumn-1] == ' '
}

// docs/uses.md must show examples that run, and below each one its output.
func TestUsesShowsExamplesThatRun(t *testing.T) {
	examples := map[string]string{} // the output, by the code
	for _, folder := range []string{".", "cronlock", "fence", "otellock"} {
		for _, e := range examplesIn(t, folder) {
			examples[e.code] = e.output
		}
	}
	page := readFile(t, "docs/uses.md")
	blocks, shown := codeBlock.FindAllStringSubmatch(page, -1), 0
	for i, block := range blocks {
		if block[1] != "go" {
			continue
		}
		shown++
		output, ok := examples[strings.TrimSpace(block[2])]
		switch {
		case !ok:
			t.Errorf("no example has this code of docs/uses.md:\n%s", block[2])
		case output != "" && (i+1 == len(blocks) || strings.TrimSpace(blocks[i+1][2]) != output):
			t.Errorf("docs/uses.md does not show the output of\n%s\nThe output is:\n%s", block[2], output)
		}
	}
	if shown < 10 {
		t.Errorf("only %d examples were found: is the pattern right?", shown)
	}
}

// The README must show the body of an example, and before it only imports of the example.
func TestREADMEShowsTheExample(t *testing.T) {
	block := regexp.MustCompile("(?s)```go\n(import \\(\n(.*?)\\)\n\n)?(.*?)```").FindStringSubmatch(readFile(t, "README.md"))
	if block == nil {
		t.Fatal("README.md has no block of Go")
	}
	source := readFile(t, "sqlitelock/example_test.go")
	for _, path := range regexp.MustCompile(`"[^"]+"`).FindAllString(block[2], -1) {
		if !strings.Contains(source, path) {
			t.Errorf("README.md imports %s, but sqlitelock/example_test.go does not", path)
		}
	}
	if !slices.ContainsFunc(examplesIn(t, "sqlitelock"), func(e example) bool { return e.code == strings.TrimSpace(block[3]) }) {
		t.Errorf("no example of sqlitelock has this code of README.md:\n%s", block[3])
	}
}
