package main

import (
	"os"
	"strings"
	"testing"
)

// These tests compare the documents with the command.

func document(t *testing.T, file string) string {
	t.Helper()
	text := mustGet(os.ReadFile("../../" + file))(t)
	return string(text)
}

func TestTheManualAndThePackageCommentHaveEachCommand(t *testing.T) {
	t.Parallel()
	page, comment := document(t, "docs/cli.md"), document(t, "cmd/pawl/main.go")
	for _, verb := range verbs(newRoot(&output{})) {
		if verb == "version" {
			continue
		}
		if !strings.Contains(page, "pawl "+verb) {
			t.Errorf("docs/cli.md does not show pawl %s", verb)
		}
		if !strings.Contains(comment, "\n//	pawl "+verb) {
			t.Errorf("the package comment does not show pawl %s", verb)
		}
	}
}

func TestEachSchemeIsInTheDocumentOfTheBackends(t *testing.T) {
	t.Parallel()
	manual := document(t, "docs/internals/guarantees.md")
	if len(urlPrefixes()) < 9 {
		t.Errorf("the URLs begin with %q, want 9 schemes or more", urlPrefixes())
	}
	for _, prefix := range urlPrefixes() {
		if !strings.Contains(manual, "`"+prefix) {
			t.Errorf("docs/internals/guarantees.md has no URL that begins with %s", prefix)
		}
	}
}
