//go:build !race

package repotest

import (
	"bytes"
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// These tests check the rules of docs/internals/design.md about imports, comments and the
// length of files.

// corePackages are the packages that may import only the standard library, x/sys, each
// other, and the imports given here.
var corePackages = map[string][]string{
	modulePath:                 nil,
	modulePath + "/driver":     nil,
	modulePath + "/locktable":  nil,
	modulePath + "/memlock":    nil,
	modulePath + "/quorumlock": nil,
	modulePath + "/drivertest": {"pgregory.net/rapid"},

	modulePath + "/internal/backends":   nil,
	modulePath + "/internal/backoff":    nil,
	modulePath + "/internal/access":     nil,
	modulePath + "/internal/clock":      nil,
	modulePath + "/internal/inbox":      nil,
	modulePath + "/internal/keepalive":  nil,
	modulePath + "/internal/lazyctx":    nil,
	modulePath + "/internal/localqueue": nil,
	modulePath + "/internal/returner":   nil,
	modulePath + "/internal/trust":      nil,
	modulePath + "/internal/watching":   nil,
}

// clockless are the packages that take the time as a value: they read no clock, make no
// timer, and start no goroutine. So their tests need neither a bubble nor long waits.
var clockless = []string{"internal/inbox", "internal/keepalive", "internal/localqueue", "internal/trust", "locktable"}

// importTesting are the packages besides drivertest that are only for tests and may
// import testing.
var importTesting = []string{modulePath + "/internal/bubble", modulePath + "/internal/recordtest"}

var systems = []string{"linux", "darwin", "windows"}

func TestPackagesImportOnlyAllowedPackages(t *testing.T) {
	for _, system := range systems {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			packages := goList(t, system)
			for path, allowed := range corePackages {
				p := packages[path]
				if p == nil {
					t.Errorf("package %s does not exist", path)
					continue
				}
				for _, i := range p.Imports {
					checkCoreImport(t, packages, path, i, allowed)
				}
			}
			for path, p := range packages {
				if p.DepOnly || within(path, modulePath+"/drivertest") || slices.Contains(importTesting, path) {
					continue
				}
				for _, i := range p.Imports {
					ours := within(i, modulePath) && !within(i, modulePath+"/drivertest")
					if i == "testing" || !ours && slices.Contains(packages[i].Deps, "testing") {
						t.Errorf("%s imports %s, which links testing into users' programs: use servertest.TB", path, i)
					}
				}
			}
		})
	}
}

// checkCoreImport checks one import of a core package, or of an internal package that a
// core package uses.
func checkCoreImport(t *testing.T, packages map[string]*goPackage, path, i string, allowed []string) {
	t.Helper()
	_, isCore := corePackages[i]
	switch {
	case isCore, packages[i].Standard, within(i, "golang.org/x/sys"), slices.Contains(allowed, i):
	case within(i, modulePath+"/internal"):
		for _, j := range packages[i].Imports {
			checkCoreImport(t, packages, i, j, nil)
		}
	default:
		t.Errorf("%s must not import %s", path, i)
	}
}

// corePackages must contain each package that the root imports, so that no code moves
// unnoticed into a package without these rules.
func TestCorePackagesAreAllListed(t *testing.T) {
	for _, i := range goList(t, "")[modulePath].Imports {
		if _, ok := corePackages[i]; !ok && within(i, modulePath) {
			t.Errorf("the root imports %s, which is not in corePackages", i)
		}
	}
}

func TestClocklessPackagesReadNoClock(t *testing.T) {
	clocks := regexp.MustCompile(`\btime\.(Now|Since|Until|Sleep|After|AfterFunc|Tick|NewTimer|NewTicker)\(|(?m)^\s*go `)
	for _, dir := range clockless {
		for _, file := range goFiles(t, dir) {
			if found := clocks.FindString(readFile(t, file)); found != "" {
				t.Errorf("%s has %q", file, found)
			}
		}
	}
}

// Under the race detector, synctest.Test may end the process; see internal/bubble. Only
// examples for users may call it, because they cannot import an internal package.
func TestOnlyExamplesCallSynctest(t *testing.T) {
	exempt := []string{"example_", "internal/bubble/", "internal/e2e/doctest/testing_test.go", "pawltest/example_test.go"}
	call := regexp.MustCompile(`(?m)^[^/\n]*\bsynctest\.Test\(`)
	for file, text := range sourceFiles(t, ".go") {
		isExempt := slices.ContainsFunc(exempt, func(prefix string) bool { return strings.HasPrefix(file, prefix) })
		if !isExempt && call.Match(text) {
			t.Errorf("%s calls synctest.Test; use bubble.Test", file)
		}
	}
}

// revive checks the comments of packages, types and functions. For constants and
// variables it does not accept the comment of a block, so this test checks these.
func TestEveryExportedValueHasADocComment(t *testing.T) {
	for _, p := range goList(t, "") {
		if p.DepOnly || p.Name == "main" || within(p.ImportPath, modulePath+"/internal") {
			continue
		}
		for _, file := range parsedFiles(t, p.Dir) {
			for s, group := range specsOf[*ast.ValueSpec](file) {
				if group.Doc == nil && s.Names[0].IsExported() && s.Doc == nil && s.Comment == nil {
					t.Errorf("%s.%s has no comment", p.ImportPath, s.Names[0].Name)
				}
			}
		}
	}
}

func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

func TestNoFileIsTooLong(t *testing.T) {
	for file, text := range sourceFiles(t, ".go", ".sh", ".lua", ".sql", ".md") {
		limit, page := 500, strings.HasSuffix(file, ".md")
		if page {
			limit = 400
		}
		if page && !within(file, "docs") || bytes.Contains(text[:min(len(text), 1000)], []byte("DO NOT EDIT.\n")) {
			continue
		}
		if lines := bytes.Count(text, []byte("\n")); lines > limit {
			t.Errorf("%s has %d lines, over %d: is there a second idea in it?", file, lines, limit)
		}
	}
}

// Kits have the helpers of tests. A file of tests has the name of the file that it tests.
func TestKitFilesHaveNoTests(t *testing.T) {
	test := regexp.MustCompile(`(?m)^func (Test|Benchmark|Fuzz|Example)\w*\(`)
	for file, text := range sourceFiles(t, ".go") {
		if found := test.Find(text); found != nil && strings.HasSuffix(file, "kit_test.go") {
			t.Errorf("%s has %q", file, found)
		}
	}
}
