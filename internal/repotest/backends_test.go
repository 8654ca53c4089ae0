//go:build !race

package repotest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/backends"
)

// These tests compare the lists of backends with the table in internal/backends.

// moduleFolders returns the folders of the backends with their own modules.
func moduleFolders() (folders []string) {
	for _, b := range backends.All {
		if _, err := os.Stat(filepath.Join(b.Folder, "go.mod")); err == nil {
			folders = append(folders, b.Folder)
		}
	}
	return folders
}

func TestEachBackendRunsTheSuite(t *testing.T) {
	for _, b := range backends.All {
		if !anyFile(t, b.Folder, "_test.go", "drivertest.Run(") {
			t.Errorf("%s does not run the suite", b.Folder)
		}
	}
}

// A backend may import its client, but not the root package, which is above it.
func TestBackendsImportTheirClientsOnly(t *testing.T) {
	packages := goList(t, "")
	for _, b := range backends.All {
		for _, i := range packages[modulePath+"/"+b.Folder].Imports {
			allowed := packages[i].Standard || i != modulePath && within(i, modulePath) || within(i, "golang.org/x/sys")
			for _, of := range backends.All { // redlock imports redislock and the client of redislock
				for client := range of.Clients {
					allowed = allowed || within(b.Folder, of.Folder) && within(i, client)
				}
			}
			if !allowed {
				t.Errorf("%s imports %s: if that is its client, add it to internal/backends", b.Folder, i)
			}
		}
	}
}

func TestEachModuleOfABackendIsInTheTable(t *testing.T) {
	for _, m := range modules(t) {
		runsSuite := anyFile(t, filepath.Join(m.Folder, "."), "_test.go", "drivertest.Run(")
		if m.Folder != "" && runsSuite && !slices.Contains(moduleFolders(), m.Folder) {
			t.Errorf("internal/backends has no entry for %s", m.Folder)
		}
	}
}

// The documents that compare backends must have a row for each backend.
func TestDocumentsHaveARowForEachBackend(t *testing.T) {
	readme, choosing := readFile(t, "README.md"), section(t, "docs/choosing.md", "## Facts")
	guarantees := readFile(t, "docs/internals/guarantees.md")
	for _, b := range backends.All {
		if len(b.Schemes) == 0 {
			continue
		}
		if !regexp.MustCompile("(?m)^\\| .* \\| `" + b.Schemes[0] + ":").MatchString(readme) {
			t.Errorf("the README has no row for %s", b.Name)
		}
		if !strings.Contains(choosing, "\n| "+b.Name+" |") {
			t.Errorf("docs/choosing.md has no row of facts for %s", b.Name)
		}
		for _, heading := range []string{"### In short", "### URLs and packages", "### What it was tested on", "### Whose clock decides expiry"} {
			_, part, _ := strings.Cut(guarantees, "\n"+heading+"\n")
			if part, _, _ = strings.Cut(part, "\n###"); !strings.Contains(part, "\n| "+b.Name+" |") {
				t.Errorf("docs/internals/guarantees.md, %s: no row for %s", heading, b.Name)
			}
		}
		if page := "docs/backends/" + b.Page + ".md"; b.Page != "" && !strings.Contains(readme, "("+page+")") {
			t.Errorf("the README does not link %s", page)
		}
	}
}

// maxFilesByHand is the largest number of files outside its own folders that the author
// of a new backend must change by hand. Commands write the other files.
const maxFilesByHand = 14

// CONTRIBUTING.md must list all files outside its own folders that a new backend changes.
// The test checks this for NATS: the list must contain each file that names NATS, and
// each file in the list must name NATS. Documents may also name it where it differs.
func TestContributingNamesTheFilesThatABackendIsIn(t *testing.T) {
	list := section(t, "CONTRIBUTING.md", "## Adding a backend")
	_, list, _ = strings.Cut(list, "**Add it to the table**")
	var named []string
	for _, m := range regexp.MustCompile("[`(]([\\w/.-]*\\.(?:go|mod|sum|work|md|txt|yml|1))[`)]").FindAllStringSubmatch(list, -1) {
		if m[1] != "go.mod" && m[1] != "docs/backends/nats.md" && !slices.Contains(named, m[1]) { // both are NATS's
			named = append(named, m[1])
		}
	}
	byHand := slices.DeleteFunc(slices.Clone(named), func(file string) bool {
		return strings.HasPrefix(file, "cmd/pawl/testdata/golden/") || strings.Contains(file, "/go.") || file == ".github/workflows/nightly.yml"
	})
	if len(byHand) > maxFilesByHand || len(byHand) < maxFilesByHand/2 {
		t.Errorf("a new backend changes %d files by hand, want at most %d: %q", len(byHand), maxFilesByHand, byHand)
	}
	for _, file := range named {
		if !regexp.MustCompile(`(?i)\bnats`).MatchString(readFile(t, file)) {
			t.Errorf("CONTRIBUTING.md, Adding a backend: %s does not name NATS", file)
		}
	}
	exempt := []string{
		"natslock", "docs/backends/nats.md", "internal/natstest", "internal/testservers", "bench", "docs/internals/writing-a-backend.md", "internal/repotest/backends_test.go",
		"Makefile",                         // it tests some packages separately
		"internal/e2e/zero",                // its tests write their tables with -update
		"cmd/pawl/prove/proxy/url_test.go", // examples of URLs
		"internal/pictures",                // its benchmarks
		"otellock/dashboard",               // a dependency of its dependencies
		// They name tests of some backends; docs/internals/bad-days.md names all.
		"docs/internals/reliability.md", "docs/internals/track-record.md",
		"docs/internals/tests.md", // a measurement, with the packages of its day
	}
	namesNATS := map[bool]*regexp.Regexp{true: regexp.MustCompile(`\bnats(lock|test)\b|\bnats(\+tls)?:`), false: regexp.MustCompile(`(?i)\bnats`)}
	for file, text := range sourceFiles(t, ".go", ".mod", ".work", ".md", ".yml", ".yaml", ".txt", ".1", "") {
		own := slices.ContainsFunc(exempt, func(m string) bool { return within(file, m) }) || strings.HasPrefix(file, "docs/internals/benchmarks")
		if !own && !slices.Contains(named, file) && namesNATS[filepath.Ext(file) == ".md"].Match(text) {
			t.Errorf("CONTRIBUTING.md, Adding a backend: %s names NATS but is not in the list", file)
		}
	}
}
