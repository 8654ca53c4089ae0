//go:build !race

package repotest

import (
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/errors.md and the pages below it describe the meaning and the cause of each error,
// and the next step. These tests compare the pages with the texts in the golden files and
// with the exported names.

// An errorEntry is a section of a page, which begins with the texts of errors.
type errorEntry struct {
	page, title string
	texts       []string // as the page shows them, with "…" for variable parts
	body        string
}

func errorPages(t *testing.T) map[string]string {
	t.Helper()
	return filesMatching(t, "docs/errors*.md", "docs/internals/errors-*.md")
}

// entriesOf returns the sections of a page that have texts.
func entriesOf(page, text string) (entries []*errorEntry) {
	e := &errorEntry{page: page}
	for line := range strings.SplitSeq(text, "\n") {
		shown, code := strings.CutPrefix(line, "    ")
		switch {
		case strings.HasPrefix(line, "#"):
			e = &errorEntry{page: page, title: strings.TrimLeft(line, "# ")}
		case code && (strings.HasPrefix(shown, "pawl: ") || strings.HasPrefix(shown, "context ")):
			if e.texts = append(e.texts, shown); len(e.texts) == 1 {
				entries = append(entries, e)
			}
		default:
			e.body += line + "\n"
		}
	}
	return entries
}

// patternOf returns a pattern that matches the errors of a text of a page.
func patternOf(text string) *regexp.Regexp {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(text), "…", ".*") + "$")
}

// scriptError matches a line of a script that expects a whole error.
var scriptError = regexp.MustCompile(`(?m)^stderr '\^(pawl: .*?)\$?'$`)

// printedErrors returns the errors in the golden files, each with its file. The errors of
// scripts have an empty file, because a pattern may be only a part of an error.
func printedErrors(t *testing.T) map[string]string {
	t.Helper()
	printed := map[string]string{}
	for _, file := range []string{"testdata/errors.txt", "cmd/pawl/testdata/golden/messages.txt", "cmd/pawl/testdata/golden/refused.txt"} {
		for line := range strings.SplitSeq(readFile(t, file), "\n") {
			text := strings.TrimSpace(line)
			if strings.HasPrefix(text, "pawl: ") || line != text && strings.HasPrefix(text, "context ") {
				printed[text] = file
			}
		}
	}
	for _, text := range filesMatching(t, "cmd/pawl/testdata/*.txt") {
		for _, m := range scriptError.FindAllStringSubmatch(text, -1) {
			printed[strings.NewReplacer(`\`, "", "''", "'", "[0-9]+", "FENCE").Replace(m[1])] = ""
		}
	}
	if len(printed) < 130 {
		t.Fatalf("only %d texts were found: are the patterns right?", len(printed))
	}
	return printed
}

func TestErrorsAreAllListedInTheDocuments(t *testing.T) {
	var entries []*errorEntry
	for page, text := range errorPages(t) {
		entries = append(entries, entriesOf(page, text)...)
	}
	printed := printedErrors(t)
	listed := map[string]bool{}
	for _, e := range entries {
		for _, label := range []string{"**Means**: ", "**Why**: ", "**Next**: "} {
			if !strings.Contains(e.body, "\n- "+label) {
				t.Errorf("%s: %q has no %s", e.page, e.title, label)
			}
		}
		for _, text := range e.texts {
			pattern, found := patternOf(text), false
			if strings.Trim(strings.TrimPrefix(text, "pawl: "), "… :;") == "" {
				t.Errorf("%s: %q matches all errors", e.page, text)
			}
			for s := range printed {
				if pattern.MatchString(s) {
					found, listed[s] = true, true
				}
			}
			if !found {
				t.Errorf("%s: no golden file has this error any more: %s", e.page, text)
			}
		}
	}
	for _, s := range slices.Sorted(maps.Keys(printed)) {
		if !listed[s] && printed[s] != "" {
			t.Errorf("no entry of docs/errors*.md or docs/internals/errors-*.md has this error of %s:\n%s", printed[s], s)
		}
	}
}

// exportedErrors matches the names of errors to branch on, and of their types.
var exportedErrors = regexp.MustCompile(`^Err[A-Z]\w*$|^[A-Z]\w*Error$|^Error$|^Reason[A-Z]\w*$`)

func TestErrorsThatAreExportedAreAllListedInTheDocuments(t *testing.T) {
	pages := ""
	for _, text := range errorPages(t) {
		pages += text
	}
	declaredErrors := map[string]bool{"ErrX": true}
	for path, p := range goList(t, "") {
		if p.DepOnly || p.Name == "main" || within(path, modulePath+"/internal") {
			continue
		}
		for _, f := range parsedFiles(t, p.Dir) {
			for _, name := range declaredNames(f) {
				if exportedErrors.MatchString(name) && name != "SeverityError" {
					declaredErrors[name] = true
					if name == "Error" {
						name = "driver.Error"
					}
					if !strings.Contains(pages, "`"+name+"`") {
						t.Errorf("docs/errors.md does not name %s.%s", p.Name, name)
					}
				}
			}
		}
	}
	for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(pages, -1) {
		if exportedErrors.MatchString(m[1]) && !declaredErrors[m[1]] {
			t.Errorf("docs/errors.md names %s, which does not exist", m[1])
		}
	}
}

// declaredNames returns the names of the types, variables and constants of a file.
func declaredNames(f *ast.File) (names []string) {
	for s := range specsOf[*ast.TypeSpec](f) {
		names = append(names, s.Name.Name)
	}
	for s := range specsOf[*ast.ValueSpec](f) {
		for _, n := range s.Names {
			names = append(names, n.Name)
		}
	}
	return names
}
