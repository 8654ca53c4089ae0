//go:build !race

package repotest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The documents name the test that shows each guarantee, fault and defect. These tests
// check that each named test exists, and that each row of a guarantee names one.

func guaranteesDocuments(t *testing.T) map[string]string {
	t.Helper()
	return filesMatching(t, "docs/internals/guarantees*.md", "docs/internals/bad-days.md", "docs/internals/reliability.md",
		"docs/internals/track-record.md", "docs/backends/*.md")
}

func TestTestsNamedInGuaranteesExist(t *testing.T) {
	named := 0
	for file, text := range guaranteesDocuments(t) {
		for _, m := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(text, -1) {
			exists, isTest := testExists(t, m[1])
			if !isTest {
				continue
			}
			if named++; !exists {
				t.Errorf("%s names the test %s, which does not exist", file, m[1])
			}
		}
	}
	if named < 100 {
		t.Errorf("only %d names of tests were found: are the patterns right?", named)
	}
}

// Each row of a table whose last column is "shown by" must name a test or another source:
// the documentation of a project, a measurement, or a logical reason.
func TestEachRowOfGuaranteesNamesItsSource(t *testing.T) {
	rows := 0
	for file, text := range guaranteesDocuments(t) {
		inSourceTable := false
		for i, line := range strings.Split(text, "\n") {
			if !strings.HasPrefix(line, "|") {
				inSourceTable = false
				continue
			}
			cells := strings.Split(strings.Trim(line, "| "), " | ")
			last := cells[len(cells)-1]
			switch {
			case last == "shown by":
				inSourceTable = true
			case inSourceTable && !strings.HasPrefix(line, "|--"):
				if rows++; len(cells) != 3 || !namesSource(t, last) {
					t.Errorf("%s:%d: the row %s names no test or source", file, i+1, cells[0])
				}
			}
		}
	}
	if rows < 60 {
		t.Errorf("only %d rows were found: is the pattern right?", rows)
	}
}

func namesSource(t *testing.T, cell string) bool {
	t.Helper()
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
		if _, isTest := testExists(t, m[1]); isTest {
			return true
		}
	}
	return regexp.MustCompile(`documentation|\(benchmarks\.md\)|by its nature|as for `).MatchString(cell)
}

// Other documents name tests without their packages.
func TestTestsNamedInDocumentsExist(t *testing.T) {
	tests := map[string]bool{}
	for _, text := range sourceFiles(t, ".go") {
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+|Fuzz\w+)\(`).FindAllSubmatch(text, -1) {
			tests[string(m[1])] = true
		}
	}
	for file, text := range sourceFiles(t, ".md") {
		for _, m := range regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)`").FindAllSubmatch(text, -1) {
			if !tests[string(m[1])] {
				t.Errorf("%s names the test %s, which does not exist", file, m[1])
			}
		}
	}
}

var (
	suiteTest   = regexp.MustCompile(`^([A-Z]\w+)/([A-Z]\w+)$`)
	packageTest = regexp.MustCompile(`^([a-z][\w/]*)\.((?:Test|Fuzz|Benchmark)\w+)(?:/(\S+))?$`)
	suiteTopics = regexp.MustCompile(`\{"(\w+)", (test\w+), `)
)

// testExists looks up a name that may be a test's: Topic/Subtest of the suite, or
// package.TestName, with or without a subtest.
func testExists(t *testing.T, name string) (exists, isTest bool) {
	t.Helper()
	if m := suiteTest.FindStringSubmatch(name); m != nil {
		return slices.ContainsFunc(suiteTopics.FindAllStringSubmatch(readFile(t, "drivertest/topics.go"), -1), func(topic []string) bool {
			return topic[1] == m[1] && anyFile(t, "drivertest", ".go", "func "+topic[2]+"(s *suite)", `"`+m[2]+`"`)
		}), true
	}
	m := packageTest.FindStringSubmatch(name)
	if m == nil {
		return false, false
	}
	folder, test, sub := m[1], m[2], strings.ReplaceAll(m[3], "_", " ")
	if folder == "pawl" {
		folder = "."
	}
	exists = anyFile(t, folder, "_test.go", "\nfunc "+test+"(")
	if sub != "" {
		kits, _ := filepath.Glob("internal/*test") // packages with shared tests
		exists = exists && slices.ContainsFunc(append(kits, folder), func(in string) bool { return anyFile(t, in, ".go", `"`+sub+`"`) })
	}
	return exists, true
}

// anyFile reports whether a file in a folder contains all of these texts.
func anyFile(t *testing.T, folder, ending string, words ...string) bool {
	t.Helper()
	files, err := os.ReadDir(folder)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(files, func(f os.DirEntry) bool {
		if !strings.HasSuffix(f.Name(), ending) {
			return false
		}
		text := readFile(t, filepath.Join(folder, f.Name()))
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
	})
}
