//go:build unix

package doctest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/backends"
)

// deploy is the program of each page of docs/backends, word for word. Only the import of
// the backend and the URL differ.
func deploy(ctx context.Context) error {
	locks, err := pawl.Open(ctx, os.Getenv("PAWL_URL"), nil)
	if err != nil {
		return err
	}
	defer locks.Close()
	return locks.Mutex("deploy").Do(ctx, func(ctx context.Context) error {
		fence, _ := pawl.FenceOf(ctx, "deploy") // send it with what you write
		fmt.Println("only one of me, with fence", fence)
		return ctx.Err() // ctx ends when the lock is lost
	})
}

// backendPages returns the pages of docs/backends, by backend.
func backendPages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, page := range pages(t) {
		folder, file := filepath.Split(page)
		if name := strings.TrimSuffix(file, ".md"); folder == "docs/backends/" && importOf(name) != "" {
			found[name] = page
		}
	}
	if len(found) < 8 {
		t.Fatalf("found %d pages of backends, want 8 or more: %v", len(found), found)
	}
	return found
}

// TestEachBackendPageShowsTheProgramThatRuns compares the Go code of each page with
// deploy, and runs deploy with the page's URL, in a process of its own.
func TestEachBackendPageShowsTheProgramThatRuns(t *testing.T) {
	body := bodyOf(t, "start_unix_test.go", "func deploy(ctx context.Context) error {")
	exe, err := os.Executable()
	noError(t, err)
	for name, page := range backendPages(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var code string
			for _, b := range blocks(t, page) {
				if b.info == "go" {
					code = b.text
				}
			}
			url := urlOf(t, page)
			imported := regexp.MustCompile(`(?s)^import \(\n.*?\n\t_ "github.com/pawl-go/pawl/(\w+)" // for URLs that begin with \w+:\n\)\n\n`).FindStringSubmatch(code)
			if imported == nil || imported[1] != importOf(name) {
				t.Fatalf("%s does not import the backend: %q", page, imported)
			}
			if got := strings.TrimPrefix(code, imported[0]); got != body {
				t.Errorf("%s shows\n%s\nbut deploy is\n%s", page, got, body)
			}

			names := startServersFor(t, page)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, exe)
			cmd.Env = append(os.Environ(), deployVariable+"=1", "PAWL_URL="+names.toTest(url), noRaceExitPause)
			printed, err := cmd.CombinedOutput()
			prints := []string{"only one of me, with fence 1795316400000000", ""}
			if err != nil || url == "" || !normalizedLinesMatch(prints, strings.Split(string(printed), "\n")) {
				t.Errorf("%s with PAWL_URL=%s printed\n%s%v", page, url, printed, err)
			}
		})
	}
}

// urlOf returns the URL of a page.
func urlOf(t *testing.T, page string) (url string) {
	t.Helper()
	at := regexp.MustCompile(`(?m)^\$ export PAWL_URL=(\S+)$`)
	for _, b := range blocks(t, page) {
		if m := at.FindStringSubmatch(b.text); m != nil && b.info != "go" {
			url = strings.Trim(m[1], `'"`)
		}
	}
	return url
}

// importOf returns the package of the backend that a page is about.
func importOf(page string) string {
	for _, b := range backends.All {
		if b.Page == page {
			return b.Folder
		}
	}
	return ""
}

// bodyOf returns the body of a function in a file, without the first tab of each line.
func bodyOf(t *testing.T, file, begin string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	noError(t, err)
	_, after, found := strings.Cut(string(text), "\n"+begin+"\n")
	body, _, ended := strings.Cut(after, "\n}\n")
	if !found || !ended {
		t.Fatalf("%s has no %s", file, begin)
	}
	return strings.ReplaceAll(strings.TrimPrefix(body, "\t"), "\n\t", "\n") + "\n"
}
