//go:build !race

package repotest

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// These tests compare lists in documents with the repository: of packages, dependencies,
// make targets and benchmarks.

// The table has at most ten rows, so that people read it. The packages below internal are
// explained by their comments, which revive requires.
func TestContributingHasAPlaceForEachPackage(t *testing.T) {
	text := section(t, "CONTRIBUTING.md", "## Where is what")
	_, table, _ := strings.Cut(text, "|---")
	table, _, _ = strings.Cut(table, "\n\n")
	if rows := strings.Count(table, "\n"); rows > 10 {
		t.Errorf("the table of CONTRIBUTING.md has %d rows; want at most 10", rows)
	}
	quoted := regexp.MustCompile("`([^` ]+)`")
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		found, _ := filepath.Glob(strings.TrimSuffix(m[1], "/"))
		below, _ := filepath.Glob(filepath.Join("*", m[1])) // in the folder of its row
		testdata, _ := filepath.Glob(filepath.Join("cmd", "pawl", m[1]))
		if len(found)+len(below)+len(testdata) == 0 {
			t.Errorf("CONTRIBUTING.md names %s, which does not exist", m[1])
		}
	}
	places := quoted.FindAllStringSubmatch(table, -1)
	for _, folder := range folders(t) {
		if folder != "" && !slices.ContainsFunc(places, func(m []string) bool {
			place, isFolder := strings.CutSuffix(m[1], "/")
			matched, _ := filepath.Match(place, strings.Split(folder, "/")[0])
			return isFolder && (matched || within(folder, place))
		}) {
			t.Errorf("CONTRIBUTING.md has no row for %s", folder)
		}
	}
}

func TestDocumentsNameTheCorePackages(t *testing.T) {
	quoted := regexp.MustCompile("`([^`]+)`")
	for file, sentence := range map[string]*regexp.Regexp{
		"CONTRIBUTING.md":          regexp.MustCompile(`(?s)The\s+core\s+\(the\s+root, (.*?)\)`),
		"docs/internals/design.md": regexp.MustCompile(`(?s)The root, (.*?) import the\s+standard\s+library`),
	} {
		m := sentence.FindStringSubmatch(readFile(t, file))
		if m == nil {
			t.Errorf("%s does not list the core packages", file)
			continue
		}
		named := []string{modulePath}
		for _, q := range quoted.FindAllStringSubmatch(m[1], -1) {
			named = append(named, modulePath+"/"+q[1])
		}
		for path := range corePackages {
			if !within(path, modulePath+"/internal") && !slices.Contains(named, path) {
				t.Errorf("%s does not name the core package %s", file, path)
			}
		}
		for _, path := range named {
			if _, core := corePackages[path]; !core {
				t.Errorf("%s names %s, which is no core package", file, path)
			}
		}
	}
}

// docs/internals/design.md must explain each module of another project that we import.
func TestEachDependencyIsExplained(t *testing.T) {
	design := readFile(t, "docs/internals/design.md")
	for _, module := range modules(t) {
		for _, m := range module.Require {
			if !m.Indirect && !within(m.Path, modulePath) && !strings.Contains(design, "| "+m.Path+" ") {
				t.Errorf("docs/internals/design.md does not explain %s, which %s requires", m.Path, module.Folder)
			}
		}
	}
}

// makeCommand matches a make command at the start of a line of code or in backquotes.
var makeCommand = regexp.MustCompile("(?m)(?:^    |`)make((?: [A-Za-z_]+=(?:'[^']*'|[^ `\n]+)| [a-z]+)+)")

// The make commands in documents must have existing targets, variables and benchmarks.
func TestMakeCommandsInDocumentsAreValid(t *testing.T) {
	makefile := readFile(t, "Makefile")
	word := regexp.MustCompile(`([A-Za-z_]+)=('[^']*'|\S+)|([a-z]+)`)
	commands := 0
	for file, text := range sourceFiles(t, ".md") {
		pkg := "."
		for _, m := range makeCommand.FindAllStringSubmatch(string(text), -1) {
			commands++
			bench := ""
			for _, w := range word.FindAllStringSubmatch(m[1], -1) {
				name, value, target := w[1], strings.Trim(w[2], "'"), w[3]
				switch {
				case target != "" && !strings.Contains(makefile, "\n"+target+":"):
					t.Errorf("%s: make has no %s: %s", file, target, m[0])
				case name != "" && !regexp.MustCompile(`\b`+name+`\b`).MatchString(makefile):
					t.Errorf("%s: make has no %s", file, name)
				case name == "PKG":
					pkg = value
				case name == "BENCH":
					bench = value
				}
			}
			if bench != "" {
				wantBenchmark(t, file, pkg, bench)
			}
		}
	}
	if commands < 20 {
		t.Errorf("only %d commands were found: is the pattern right?", commands)
	}
	for file, text := range filesMatching(t, "docs/internals/benchmarks*.md") {
		for _, m := range regexp.MustCompile("`BENCH=('[^'`]*'|[^` ]+)`").FindAllStringSubmatch(text, -1) {
			wantBenchmark(t, file, "./...", strings.Trim(m[1], "'"))
		}
	}
}

func wantBenchmark(t *testing.T, file, pkg, pattern string) {
	t.Helper()
	tests, err := filepath.Glob(filepath.Join(pkg, "*_test.go"))
	if err != nil || pkg == "./..." {
		tests, err = filepath.Glob("*_test.go")
		below, _ := filepath.Glob(filepath.Join("*", "*_test.go"))
		tests = append(tests, below...)
	}
	noError(t, err)
	pattern = strings.ReplaceAll(pattern, "$$", "$")
	for _, test := range tests {
		for _, m := range regexp.MustCompile(`(?m)^func Benchmark(\w+)\(`).FindAllStringSubmatch(readFile(t, test), -1) {
			if regexp.MustCompile(pattern).MatchString("Benchmark" + m[1]) {
				return
			}
		}
	}
	t.Errorf("%s: no benchmark in %s matches %s", file, pkg, pattern)
}

// Go compiles a package once for each set of flags. With other flags than make built, a
// test would compile the servers again while other tests run.
func TestTestServersHaveTheFlagsOfMakeBuilt(t *testing.T) {
	flags := regexp.MustCompile(`(?m)^PLAIN +:= .*GOFLAGS='(.*)'$`).FindStringSubmatch(readFile(t, "Makefile"))
	if flags == nil {
		t.Fatal("the Makefile has no PLAIN")
	}
	build := readFile(t, "internal/testservers/build.go")
	for flag := range strings.FieldsSeq(flags[1]) {
		if !strings.Contains(build, `"`+flag+`"`) {
			t.Errorf("internal/testservers/build.go builds without %s", flag)
		}
	}
}

// The workflows of GitHub must run the same as .ci/run. A release must have the platforms
// that make cross compiles for.
func TestTheWorkflowsDoWhatMakeDoes(t *testing.T) {
	workflow, makefile := readFile(t, ".github/workflows/ci.yml"), readFile(t, "Makefile")
	if !strings.Contains(workflow, "- run: .ci/run\n") {
		t.Error(".github/workflows/ci.yml does not run .ci/run")
	}
	for _, file := range []string{".github/workflows/ci.yml", ".github/workflows/nightly.yml", ".github/workflows/release.yml", ".ci/run"} {
		for _, m := range regexp.MustCompile(`(?m)(?:- run:|^step '[a-z]+' +) ?make ([a-z]+)`).FindAllStringSubmatch(readFile(t, file), -1) {
			if !strings.Contains(makefile, "\n"+m[1]+":") {
				t.Errorf("%s: make has no %s", file, m[1])
			}
			if file == ".ci/run" && !strings.Contains(workflow, "make "+m[1]) {
				t.Errorf(".github/workflows/ci.yml does not name make %s", m[1])
			}
		}
	}
	platforms := strings.Fields(regexp.MustCompile(`(?m)^PLATFORMS := (.*)$`).FindStringSubmatch(makefile)[1])
	var released []string
	for _, m := range regexp.MustCompile(`(?m)^      - ([a-z]+)_([a-z0-9]+)$`).FindAllStringSubmatch(readFile(t, ".goreleaser.yaml"), -1) {
		released = append(released, m[1]+"/"+m[2])
	}
	if !slices.Equal(platforms, released) {
		t.Errorf("the Makefile compiles for %q, but a release has %q", platforms, released)
	}
	all := regexp.MustCompile(`(?m)- run: make cross( #|$)`)
	for _, file := range []string{".github/workflows/nightly.yml", ".github/workflows/release.yml"} {
		if !all.MatchString(readFile(t, file)) {
			t.Errorf("%s does not run make cross for all platforms", file)
		}
	}
}
