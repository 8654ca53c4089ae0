//go:build !race

package repotest

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// CONTRIBUTING.md must list the files that a new field of a claim changes. The test
// checks three examples: Owner.Labels for a field that operators read, Claim.LockDelay
// for one that the algorithm reads, and Holder.TTL for a field of a holder.
func TestContributingListsTheFilesOfAField(t *testing.T) {
	list := section(t, "CONTRIBUTING.md", "## Adding a field to a claim")
	operatorFiles, _, _ := strings.Cut(list, "\nA field that the algorithm reads")
	var named []string
	for _, m := range regexp.MustCompile("`([a-z/_]+\\.(?:go|lua|md))`").FindAllStringSubmatch(list, -1) {
		text := readFile(t, m[1])
		named = append(named, m[1])
		if strings.HasSuffix(m[1], ".go") && strings.Contains(operatorFiles, m[0]) && !strings.Contains(text, "Labels") {
			t.Errorf("CONTRIBUTING.md, Adding a field to a claim: it lists %s, which does not name Owner.Labels", m[1])
		}
	}
	for file, text := range sourceFiles(t, ".go") {
		if strings.HasSuffix(file, "_test.go") || within(file, "drivertest") || within(file, "examples") || within(file, "bench") {
			continue
		}
		hasLabels := regexp.MustCompile(`\bOwner\b[^\n]*\bLabels\b|\b[co]\.Labels\b`).Match(text)
		if hasLabels && !slices.Contains(named, file) {
			t.Errorf("CONTRIBUTING.md, Adding a field to a claim: it does not list %s, which names Owner.Labels", file)
		}
		copiesDelay := regexp.MustCompile(`\bLockDelay\b[:,]`).Match(text)
		if copiesDelay && !slices.Contains(named, file) && !within(file, "internal/redisscript") {
			t.Errorf("CONTRIBUTING.md, Adding a field to a claim: it does not list %s, which copies Claim.LockDelay", file)
		}
		hasTTL := regexp.MustCompile(`\b[hwx]\.TTL\b`).Match(text)
		shows := slices.ContainsFunc([]string{"locktable", "quorumlock", "cmd", "dashboard"}, func(dir string) bool { return within(file, dir) })
		if hasTTL && shows && !slices.Contains(named, file) {
			t.Errorf("CONTRIBUTING.md, Adding a field to a claim: it does not list %s, which names Holder.TTL", file)
		}
	}
}

// section returns the text below a heading of a document.
func section(t *testing.T, file, heading string) string {
	t.Helper()
	_, after, found := strings.Cut(readFile(t, file), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no %s", file, heading)
	}
	text, _, _ := strings.Cut(after, "\n## ")
	return text
}
