package repotest

import (
	"path/filepath"
	"strings"
	"testing"
)

// docs/README.md is the one index: what is not in it is not found.
func TestDocumentsAreAllListedInTheIndex(t *testing.T) {
	const index = "docs/README.md"
	listed := map[string]bool{index: true}
	for _, to := range linksOf(read(t, index)) {
		page, _, _ := strings.Cut(to, "#")
		listed[filepath.ToSlash(filepath.Join("docs", page))] = true
	}
	for page := range sources(t, ".md") {
		if page = filepath.ToSlash(page); strings.HasPrefix(page, "docs/") && !listed[page] {
			t.Errorf("%s does not list %s", index, page)
		}
	}
}

// A page that is longer is two.
func TestDocumentsAreShort(t *testing.T) {
	const most = 300
	for page, text := range sources(t, ".md") {
		lines := strings.Count(string(text), "\n")
		if strings.HasPrefix(filepath.ToSlash(page), "docs/") && lines > most {
			t.Errorf("%s has %d lines, over %d: is there a second subject in it?", page, lines, most)
		}
	}
}
