package repotest

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Who imports a package pays for its module: the versions that its go.mod requires. So
// there are several, and what each requires is a decision.

// A module is what a go.mod says.
type module struct {
	Folder  string // "" is the root
	Module  struct{ Path string }
	Require []requirement
	Replace []replacement
}

type requirement struct {
	Path, Version string
	Indirect      bool
}

// A workspace is what a go.work says.
type workspace struct {
	Use     []struct{ DiskPath string }
	Replace []replacement
}

type replacement struct{ Old, New struct{ Path string } }

func goEdit[T any](t *testing.T, what, file string) (v T) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", what, "edit", "-json", file).Output()
	if err == nil {
		err = json.Unmarshal(out, &v)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return v
}

// modules are those of go.work.
func modules(t *testing.T) (all []module) {
	t.Helper()
	for _, use := range goEdit[workspace](t, "work", "go.work").Use {
		m := goEdit[module](t, "mod", filepath.Join(use.DiskPath, "go.mod"))
		m.Folder = strings.TrimPrefix(strings.TrimPrefix(filepath.ToSlash(use.DiskPath), "."), "/")
		all = append(all, m)
	}
	return all
}

func TestTheRootRequiresNoClient(t *testing.T) {
	for _, m := range modules(t) {
		if m.Folder != "" {
			continue
		}
		for _, r := range m.Require {
			if r.Path != "golang.org/x/sys" && r.Path != "pgregory.net/rapid" {
				t.Errorf("the root's go.mod requires %s, and so does each user's: move what imports it to internal/e2e", r.Path)
			}
		}
	}
}

func TestTheOldestClientsAreDocumented(t *testing.T) {
	documented := section(t, "docs/backends.md", "### The oldest clients")
	for _, m := range modules(t) {
		if m.Folder == "" || slices.Contains(requireBackends, m.Folder) {
			continue
		}
		row := regexp.MustCompile("(?m)^\\| `" + m.Folder + "` \\|.*$").FindString(documented)
		for _, r := range m.Require {
			part := slices.ContainsFunc(m.Require, func(c requirement) bool { return c.Path != r.Path && within(r.Path, c.Path) })
			ours := r.Indirect || within(r.Path, modulePath) || part
			if want := r.Path + " " + r.Version; !ours && !strings.Contains(row, want) {
				t.Errorf("docs/backends.md, The oldest clients: %s has no %s", m.Folder, want)
			}
		}
	}
}

// What needs several backends is in one of these. A backend that required another would
// take its client into the go.mod of its users.
var requireBackends = []string{"cmd/pawl", "internal/e2e", "examples"}

func TestBackendsRequireTheRootOnly(t *testing.T) {
	for _, m := range modules(t) {
		for _, r := range m.Require {
			if within(r.Path, modulePath) && r.Path != modulePath && !slices.Contains(requireBackends, m.Folder) {
				t.Errorf("%s/go.mod requires %s", m.Folder, r.Path)
			}
		}
	}
}

// A go.mod with a replace cannot be installed from with @latest. So go.work has it, and a
// module that is not in go.work, and requires one of ours, has a go.work of its own.
func TestEachModuleIsOfOneWorkspace(t *testing.T) {
	used := map[string]bool{}
	all := goEdit[workspace](t, "work", "go.work")
	for _, use := range all.Use {
		used[filepath.ToSlash(filepath.Clean(use.DiskPath))] = true
	}
	for _, m := range modules(t) {
		if !slices.ContainsFunc(all.Replace, func(r replacement) bool {
			return r.Old.Path == m.Module.Path && filepath.Clean(r.New.Path) == filepath.Clean(m.Folder)
		}) {
			t.Errorf("go.work does not replace %s", m.Module.Path)
		}
	}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "bin" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != ".") {
			return fs.SkipDir
		}
		if err != nil || d.Name() != "go.mod" {
			return err
		}
		folder := filepath.ToSlash(filepath.Dir(path))
		m := goEdit[module](t, "mod", path)
		needs := slices.ContainsFunc(m.Require, func(r requirement) bool { return within(r.Path, modulePath) })
		if _, err := os.Stat(filepath.Join(folder, "go.work")); (err == nil) != (needs && !used[folder]) && folder != "." {
			t.Errorf("%s requires our modules: %t. It is in go.work: %t. It has one of its own: %t", path, needs, used[folder], err == nil)
		}
		if len(m.Replace) > 0 {
			t.Errorf("%s has a replace: it belongs into a go.work", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
