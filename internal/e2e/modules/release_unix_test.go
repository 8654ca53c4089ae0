//go:build unix

package modules_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/skip"
)

// repository returns the top folder of the git repository of this file. It skips the test
// if the sources are an archive, perhaps inside another repository, or if git refuses the
// repository because it belongs to another user.
func repository(t *testing.T) string {
	t.Helper()
	here, err := filepath.Abs(root)
	if err == nil {
		here, err = filepath.EvalSymlinks(here)
	}
	noError(t, err)
	top, stderr, err := output(t, here, "git", "rev-parse", "--show-toplevel")
	if err != nil || strings.TrimSpace(top) != here {
		skip.Unproven(t, "%s is not the top of a repository: %v; git printed %q %q", here, err, top, stderr)
	}
	return here
}

func output(t *testing.T, folder, name string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var stdoutText, stderrText strings.Builder
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, &stdoutText, &stderrText
	err = cmd.Run()
	return stdoutText.String(), stderrText.String(), err
}

// The test makes a release in a clone, and checks only the clone.
func TestRelease(t *testing.T) {
	skipIfShort(t, "it compiles all packages in a clone, twice")
	skipWithoutProxy(t)
	top := repository(t)
	t.Setenv("GOFLAGS", strings.TrimSpace(os.Getenv("GOFLAGS")+" -buildvcs=false"))
	for _, role := range []string{"AUTHOR", "COMMITTER"} { // git may not be configured here
		t.Setenv("GIT_"+role+"_NAME", "release")
		t.Setenv("GIT_"+role+"_EMAIL", "release@example.com")
	}
	mustRun := func(folder, name string, args ...string) string {
		t.Helper()
		stdout, stderr, err := output(t, folder, name, args...)
		if err != nil {
			t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, stdout, stderr)
		}
		return stdout
	}
	const version = "v0.998.7"
	clone := filepath.Join(t.TempDir(), "a clone")
	printed := mustRun(top, "internal/tools/release.sh", version, clone)

	var want, pushed []string
	for _, folder := range releasedFolders(t) {
		want = append(want, strings.TrimPrefix(folder+"/"+version, "./"))
	}
	for line := range strings.Lines(printed) {
		if _, tags, ok := strings.Cut(line, "$REMOTE "); ok {
			pushed = append(pushed, strings.Fields(tags)...)
		}
	}
	if pushed[0] != version || pushed[len(pushed)-1] != "cmd/pawl/"+version {
		t.Errorf("the root's tag is not first, or the command's is not last: %q", pushed)
	}
	tags := strings.Fields(mustRun(clone, "git", "tag", "--points-at", "HEAD"))
	for _, got := range [][]string{pushed, tags} {
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("the tags are %q, want %q", got, want)
		}
	}
	for _, folder := range releasedFolders(t) {
		mod := mustRun(clone, "git", "show", version+":"+strings.TrimPrefix(folder+"/go.mod", "./"))
		if strings.Contains(mod, "v0.0.0\n") || folder != "." && !strings.Contains(mod, modulePath+" "+version+"\n") {
			t.Errorf("%s/go.mod requires another version:\n%s", folder, mod)
		}
	}
	compare := func() (string, error) {
		stdout, stderr, err := output(t, clone, "internal/tools/apidiff.sh", ".")
		t.Log(stderr) // the go command's downloads
		return stdout, err
	}
	if out, err := compare(); err != nil || out != "" {
		t.Errorf("without a change since the release: %v, %s", err, out)
	}
	mustRun(clone, "sed", "-i.old", "s/) WaitUntilFree(/) UntilFree(/", "watch.go")
	mustRun(clone, "sed", "-i.old", "s/OpRenew    Op = /OpRenew    = /", "driver/errors.go") // Op is our own type
	if out, err := compare(); err != nil || !strings.Contains(out, "WaitUntilFree: removed") || !strings.Contains(out, "OpRenew") {
		t.Errorf("before v1, changes are printed without an error: %v, %s", err, out)
	}
	mustRun(clone, "git", "tag", "v1.0.0", version)
	mustRun(clone, "git", "tag", "--delete", version)
	if out, err := compare(); err == nil || !strings.Contains(out, "WaitUntilFree: removed") {
		t.Errorf("from v1 on, a change is an error: %v, %s", err, out)
	}
	for _, bad := range []string{"", "1.2.3", "v1.2", "v0.0.0"} {
		if _, stderr, err := output(t, top, "internal/tools/release.sh", bad, clone); err == nil || !strings.Contains(stderr, "is no version") {
			t.Errorf("%q: %v, %s", bad, err, stderr)
		}
	}
}

// A user's go.mod may have a newer version of the root than of the backends, which use
// the root's internal packages.
func TestTheBackendsOfThePreviousReleaseCompileOnThisRoot(t *testing.T) {
	skipIfShort(t, "it builds all backends")
	skipWithoutProxy(t)
	here := repository(t)
	tags, err := exec.CommandContext(t.Context(), "git", "-C", here, "tag", "--list", "v*", "--sort=-version:refname").Output()
	if err != nil || len(tags) == 0 {
		skip.Unproven(t, "there is no release here")
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
