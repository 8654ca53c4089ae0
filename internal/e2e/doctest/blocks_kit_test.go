package doctest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the repository's folder, relative to this one.
const root = "../../.."

// A block is a fenced block of a page. info is the text after its first ```.
type block struct {
	info string
	text string
	line int
}

// blocks returns the blocks of a page, in order.
func blocks(t *testing.T, page string) (found []*block) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	noError(t, err)
	var b *block
	for i, line := range strings.Split(string(text), "\n") {
		info, fence := strings.CutPrefix(line, "```")
		switch {
		case b == nil && fence:
			b = &block{info: info, line: i + 1}
		case fence:
			found, b = append(found, b), nil
		case b != nil:
			b.text += line + "\n"
		}
	}
	if b != nil {
		t.Fatalf("%s:%d: the block does not end", page, b.line)
	}
	return found
}

// pages returns the documents for readers, by their paths in the repository.
func pages(t *testing.T) (names []string) {
	t.Helper()
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/*/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		noError(t, err)
		for _, file := range files {
			name, err := filepath.Rel(root, file)
			noError(t, err)
			names = append(names, filepath.ToSlash(name))
		}
	}
	if len(names) < 20 {
		t.Fatalf("only %d pages: %q", len(names), names)
	}
	return names
}

// A command is a command in a console block, with the output that the page shows.
type command struct {
	line     string // of the shell; it may have several lines
	shown    []string
	pageLine int
}

// commands reads a block: "$ " begins a command, "> " continues it, and all other lines
// are output.
func (b *block) commands() (found []*command) {
	for i, line := range strings.Split(strings.TrimSuffix(b.text, "\n"), "\n") {
		if begin, ok := strings.CutPrefix(line, "$ "); ok {
			found = append(found, &command{line: begin, pageLine: b.line + 1 + i})
			continue
		}
		if len(found) == 0 {
			found = append(found, &command{line: "echo 'the block does not begin with a command'", pageLine: b.line + 1 + i})
		}
		c := found[len(found)-1]
		if more, ok := strings.CutPrefix(line, "> "); ok && len(c.shown) == 0 {
			c.line += "\n" + more
			continue
		}
		c.shown = append(c.shown, line)
	}
	return found
}

// variableTexts has patterns of text that differs between runs, and their replacements.
var variableTexts = []struct {
	pattern     *regexp.Regexp
	replacement string
}{
	{regexp.MustCompile(`\b1\d{15}\b`), "FENCE"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b|\b\d\d:\d\d:\d\d\b`), "TIME"},
	{regexp.MustCompile(`\b(\d+(\.\d+)?(h|m|s|ms|µs))+\b`), "SPAN"},
	{regexp.MustCompile(`[ \t]+`), " "},
}

// normalized replaces the text of a line that differs between runs. Several blanks count
// as one, because they align columns of variable width.
func normalized(line string) string {
	for _, c := range variableTexts {
		line = c.pattern.ReplaceAllString(line, c.replacement)
	}
	return strings.TrimSpace(line)
}

// normalizedLinesMatch reports whether the printed lines match the shown lines. "..."
// stands for any text in a line, and alone in a line for any lines.
func normalizedLinesMatch(shown, printed []string) bool {
	if len(shown) == 0 {
		return len(printed) == 0
	}
	if strings.TrimSpace(shown[0]) == "..." {
		for n := range len(printed) + 1 {
			if normalizedLinesMatch(shown[1:], printed[n:]) {
				return true
			}
		}
		return false
	}
	if len(printed) == 0 {
		return false
	}
	pattern := strings.ReplaceAll(regexp.QuoteMeta(normalized(shown[0])), `\.\.\.`, ".*")
	return regexp.MustCompile("^"+pattern+"$").MatchString(normalized(printed[0])) && normalizedLinesMatch(shown[1:], printed[1:])
}
