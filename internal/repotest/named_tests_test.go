package repotest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The documents of the backends say of each thing which test shows it. Here the tests are
// looked up, so that none is named that is not there, and no row is without one.

const backendsDocuments = "docs/backends*.md"

func TestTheTestsThatTheDocumentsOfTheBackendsNameAreThere(t *testing.T) {
	named := 0
	for file, text := range matching(t, backendsDocuments) {
		for _, m := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(text, -1) {
			there, isTest := testIsThere(t, m[1])
			if !isTest {
				continue
			}
			if named++; !there {
				t.Errorf("%s names %s, which is no test", file, m[1])
			}
		}
	}
	if named < 100 {
		t.Errorf("only %d names of tests were found: are the patterns right?", named)
	}
}

// A row of a table that ends in "shown by" names a test, or whose word it is: somebody's
// documentation, what was measured, or what lies in the nature of the thing.
func TestEachRowOfTheDocumentsOfTheBackendsSaysWhatShowsIt(t *testing.T) {
	rows := 0
	for file, text := range matching(t, backendsDocuments) {
		shown := false
		for i, line := range strings.Split(text, "\n") {
			if !strings.HasPrefix(line, "|") {
				shown = false
				continue
			}
			cells := strings.Split(strings.Trim(line, "| "), " | ")
			last := cells[len(cells)-1]
			switch {
			case last == "shown by":
				shown = true
			case shown && !strings.HasPrefix(line, "|--"):
				if rows++; len(cells) != 3 || !saysWhatShowsIt(t, last) {
					t.Errorf("%s:%d: it says of %s what happens, and not what shows it", file, i+1, cells[0])
				}
			}
		}
	}
	if rows < 60 {
		t.Errorf("only %d rows were found: is the pattern right?", rows)
	}
}

func saysWhatShowsIt(t *testing.T, cell string) bool {
	t.Helper()
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
		if _, isTest := testIsThere(t, m[1]); isTest {
			return true
		}
	}
	return regexp.MustCompile(`documentation|\(benchmarks\.md\)|by its nature|as for `).MatchString(cell)
}

// Elsewhere a test is named without its package.
func TestTheTestsThatDocumentsNameAreThere(t *testing.T) {
	tests := map[string]bool{}
	for _, text := range sources(t, ".go") {
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+|Fuzz\w+)\(`).FindAllSubmatch(text, -1) {
			tests[string(m[1])] = true
		}
	}
	for file, text := range sources(t, ".md") {
		for _, m := range regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)`").FindAllSubmatch(text, -1) {
			if !tests[string(m[1])] {
				t.Errorf("%s names %s, which is no test", file, m[1])
			}
		}
	}
}

var (
	ofTheSuite  = regexp.MustCompile(`^([A-Z]\w+)/([A-Z]\w+)$`)
	ofAPackage  = regexp.MustCompile(`^([a-z][\w/]*)\.((?:Test|Fuzz|Benchmark)\w+)(?:/(\S+))?$`)
	suiteTopics = regexp.MustCompile(`\{"(\w+)", (test\w+), `)
)

// testIsThere looks a name up that may be that of a test: Topic/Subtest of the suite, or
// package.TestName, with a subtest or without.
func testIsThere(t *testing.T, name string) (there, isTest bool) {
	t.Helper()
	if m := ofTheSuite.FindStringSubmatch(name); m != nil {
		return slices.ContainsFunc(suiteTopics.FindAllStringSubmatch(read(t, "drivertest/topics.go"), -1), func(topic []string) bool {
			return topic[1] == m[1] && anyFile(t, "drivertest", ".go", "func "+topic[2]+"(s *suite)", `"`+m[2]+`"`)
		}), true
	}
	m := ofAPackage.FindStringSubmatch(name)
	if m == nil {
		return false, false
	}
	folder, test, sub := m[1], m[2], strings.ReplaceAll(m[3], "_", " ")
	if folder == "pawl" {
		folder = "."
	}
	there = anyFile(t, folder, "_test.go", "\nfunc "+test+"(")
	if sub != "" {
		kits, _ := filepath.Glob("internal/*test") // what the packages of a kind share
		there = there && slices.ContainsFunc(append(kits, folder), func(in string) bool { return anyFile(t, in, ".go", `"`+sub+`"`) })
	}
	return there, true
}

// anyFile reports whether a file of a folder has all of these words.
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
		text := read(t, filepath.Join(folder, f.Name()))
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
	})
}
