package doctest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// codeOf are the pages whose Go code is shown as it is in the files of some folders.
var codeOf = map[string][]string{
	"docs/testing.md":           {"internal/e2e/doctest"},
	"docs/writing-a-backend.md": {"internal/firstlock"},
	"docs/writing-a-store.md":   {"internal/swaplock"},
}

// TestTheCodeOfThePagesIsWhatIsRun looks each block of Go up in the code. A line "// ..."
// leaves lines out. How far a line is indented does not matter.
func TestTheCodeOfThePagesIsWhatIsRun(t *testing.T) {
	for page, folders := range codeOf {
		code := ""
		var files []string
		for _, folder := range folders {
			some, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, some...)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			code += unindented(string(text))
		}
		shown := 0
		for _, b := range blocks(t, page) {
			if b.info != "go" {
				continue
			}
			shown++
			for part := range strings.SplitSeq(unindented(b.text), "\n// ...\n") {
				if part = strings.Trim(part, "\n"); !strings.Contains(code, "\n"+part+"\n") {
					t.Errorf("%s:%d: %s does not have\n%s", page, b.line, folders, part)
				}
			}
		}
		if shown < 5 {
			t.Errorf("%s shows %d blocks of code: is the pattern right?", page, shown)
		}
	}
}

// unindented is a text whose lines begin without blanks.
func unindented(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "\n") + "\n"
}
