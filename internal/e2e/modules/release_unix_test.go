//go:build unix

package modules_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The test makes a release in a clone. Everything that it checks is in the clone.
func TestRelease(t *testing.T) {
	skipWithoutProxy(t)
	in := func(folder, name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = folder
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	if err := exec.CommandContext(t.Context(), "git", "-C", root, "rev-parse", "HEAD").Run(); err != nil {
		t.Skipf("this is no clone: %v", err)
	}
	const version = "v0.998.7"
	clone := filepath.Join(t.TempDir(), "clone")
	said := in(root, "internal/tools/release.sh", version, clone)

	var want, pushed []string
	for _, folder := range released(t) {
		want = append(want, strings.TrimPrefix(folder+"/"+version, "./"))
	}
	for line := range strings.Lines(said) {
		if _, tags, ok := strings.Cut(line, "$REMOTE "); ok {
			pushed = append(pushed, strings.Fields(tags)...)
		}
	}
	if pushed[0] != version || pushed[len(pushed)-1] != "cmd/pawl/"+version {
		t.Errorf("they are pushed in this order: %q", pushed)
	}
	tags := strings.Fields(in(clone, "git", "tag", "--points-at", "HEAD"))
	for _, got := range [][]string{pushed, tags} {
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q; want %q", got, want)
		}
	}
	for _, folder := range released(t) {
		mod := in(clone, "git", "show", version+":"+strings.TrimPrefix(folder+"/go.mod", "./"))
		if strings.Contains(mod, "v0.0.0\n") || folder != "." && !strings.Contains(mod, modulePath+" "+version+"\n") {
			t.Errorf("%s/go.mod asks for another version:\n%s", folder, mod)
		}
	}
	compare := func() (string, error) {
		cmd := exec.CommandContext(t.Context(), "internal/tools/apidiff.sh", ".")
		cmd.Dir = clone
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := compare(); err != nil || out != "" {
		t.Errorf("nothing has changed since the release: %v, %s", err, out)
	}
	in(clone, "sed", "-i.old", "s/) WaitFree(/) UntilFree(/", "watch.go")
	in(clone, "sed", "-i.old", "s/OpRenew    Op = /OpRenew    = /", "driver/errors.go") // of a type that is ours, too
	if out, err := compare(); err != nil || !strings.Contains(out, "WaitFree: removed") || !strings.Contains(out, "OpRenew") {
		t.Errorf("before v1 a change is said: %v, %s", err, out)
	}
	in(clone, "git", "tag", "v1.0.0", version)
	in(clone, "git", "tag", "--delete", version)
	if out, err := compare(); err == nil || !strings.Contains(out, "WaitFree: removed") {
		t.Errorf("from v1 on it fails: %v, %s", err, out)
	}
	for _, bad := range []string{"", "1.2.3", "v1.2", "v0.0.0"} {
		cmd := exec.CommandContext(t.Context(), "internal/tools/release.sh", bad, clone)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "is no version") {
			t.Errorf("%q: %v, %s", bad, err, out)
		}
	}
}

// A user's go.mod may have a newer root than backends, which use the root's internal
// packages.
func TestTheBackendsOfThePreviousReleaseCompileOnThisRoot(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: it builds all backends")
	}
	skipWithoutProxy(t)
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	tags, err := exec.CommandContext(t.Context(), "git", "-C", here, "tag", "--list", "v*", "--sort=-version:refname").Output()
	if err != nil || len(tags) == 0 {
		t.Skip("there is no release here")
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", `
		git -C "$HERE" archive "$RELEASE" | tar x
		sed -i.old -E "s#^\t\.\$#\t$HERE#; s#(pawl v[^ ]+ =>) \./\$#\1 $HERE#" go.work
		go build -o /dev/null $(sed -nE 's#^\t(\./.*lock|\./cmd/pawl)$#\1/...#p' go.work)`)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "GOWORK=", "HERE="+here, "RELEASE="+strings.Fields(string(tags))[0])
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", strings.Fields(string(tags))[0], err, out)
	}
}
