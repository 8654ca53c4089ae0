package doctest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// codeOf has the folders whose files contain the Go code of a page.
var codeOf = map[string][]string{
	"README.md":                           {"sqlitelock", "internal/e2e/doctest"},
	"docs/locks.md":                       {"internal/e2e/doctest"},
	"docs/your-client.md":                 {"internal/e2e/doctest"},
	"docs/testing.md":                     {"internal/e2e/doctest"},
	"docs/kubernetes.md":                  {"internal/e2e/doctest"},
	"docs/transactions.md":                {"internal/e2e/doctest"},
	"docs/internals/writing-a-backend.md": {"internal/firstlock"},
	"docs/internals/writing-a-store.md":   {"internal/swaplock"},
}

// TestTheCodeOfThePagesIsInTheirFolders finds each block of Go in the code. It ignores
// imports and indentation. A line "// ..." stands for omitted lines.
func TestTheCodeOfThePagesIsInTheirFolders(t *testing.T) {
	imports := regexp.MustCompile(`(?s)^import \(\n.*?\n\)\n\n`)
	shown := 0
	for page, folders := range codeOf {
		code, before := "", shown
		var files []string
		for _, folder := range folders {
			found, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
			noError(t, err)
			files = append(files, found...)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			noError(t, err)
			code += unindented(string(text))
		}
		for _, b := range blocks(t, page) {
			if b.info != "go" {
				continue
			}
			shown++
			for part := range strings.SplitSeq(unindented(imports.ReplaceAllString(b.text, "")), "\n// ...\n") {
				if part = strings.Trim(part, "\n"); !strings.Contains(code, "\n"+part+"\n") {
					t.Errorf("%s:%d: %s does not have\n%s", page, b.line, folders, part)
				}
			}
		}
		if shown == before {
			t.Errorf("no block of code was found in %s", page)
		}
	}
	if shown < 50 {
		t.Errorf("only %d blocks of code were found: is the pattern right?", shown)
	}
}

// unindented returns a text without blanks at the ends of its lines.
func unindented(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "\n") + "\n"
}
