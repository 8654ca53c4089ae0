//go:build !race

package repotest

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/doctable"
)

// A program that imports a package gets all requirements of the package's module. So
// there are several modules, and each requirement is a decision.

// A module is the content of a go.mod.
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

// A workspace is the content of a go.work.
type workspace struct {
	Use     []struct{ DiskPath string }
	Replace []replacement
}

type replacement struct{ Old, New struct{ Path string } }

func readModuleFile[T any](t *testing.T, command, file string) (v T) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", command, "edit", "-json", file).Output()
	if err == nil {
		err = json.Unmarshal(out, &v)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return v
}

// modules returns the modules of go.work.
func modules(t *testing.T) (all []module) {
	t.Helper()
	for _, use := range readModuleFile[workspace](t, "work", "go.work").Use {
		m := readModuleFile[module](t, "mod", filepath.Join(use.DiskPath, "go.mod"))
		m.Folder = strings.TrimPrefix(strings.TrimPrefix(filepath.ToSlash(use.DiskPath), "."), "/")
		all = append(all, m)
	}
	return all
}

// Each row must have the versions of a go.mod. A note may follow after a semicolon.
func TestTheOldestClientsAreDocumented(t *testing.T) {
	const file, head = "docs/internals/guarantees.md", "| package | asks for |"
	documented := doctable.Rows(t, file, head)
	var rows []string
	for _, m := range modules(t) {
		if m.Folder == "" || slices.Contains(requireBackends, m.Folder) {
			continue
		}
		var clients []string
		for _, r := range m.Require {
			isPart := slices.ContainsFunc(m.Require, func(c requirement) bool { return c.Path != r.Path && within(r.Path, c.Path) })
			if !r.Indirect && !within(r.Path, modulePath) && !isPart {
				clients = append(clients, r.Path+" "+r.Version)
			}
		}
		if len(clients) == 0 {
			continue
		}
		name, end := "`"+m.Folder+"`", " |"
		if _, note, found := strings.Cut(documented[name], ";"); found {
			end = ";" + note
		}
		rows = append(rows, "| "+name+" | "+strings.Join(clients, ", ")+end)
	}
	doctable.Want(t, file, head, rows)
}

// Code that needs several backends is in one of these modules. If a backend required
// another one, the go.mod of its users would get the clients of both.
var requireBackends = []string{"cmd/pawl", "internal/e2e", "examples"}

func TestModulesRequireTheRootOnly(t *testing.T) {
	for _, m := range modules(t) {
		for _, r := range m.Require {
			ours := within(r.Path, modulePath)
			switch {
			case m.Folder == "" && r.Path != "golang.org/x/sys" && r.Path != "pgregory.net/rapid":
				t.Errorf("the root's go.mod requires %s, so all users would: move the code that imports it to internal/e2e", r.Path)
			case m.Folder != "" && ours && r.Path != modulePath && !slices.Contains(requireBackends, m.Folder):
				t.Errorf("%s/go.mod requires %s", m.Folder, r.Path)
			}
		}
	}
}

// `go install` with @latest refuses a go.mod with a replace, so go.work has the replaces.
// A module outside go.work that requires one of ours must have its own go.work.
func TestEachModuleIsInOneWorkspace(t *testing.T) {
	used := map[string]bool{}
	all := readModuleFile[workspace](t, "work", "go.work")
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
		m := readModuleFile[module](t, "mod", path)
		needs := slices.ContainsFunc(m.Require, func(r requirement) bool { return within(r.Path, modulePath) })
		if _, err := os.Stat(filepath.Join(folder, "go.work")); (err == nil) != (needs && !used[folder]) && folder != "." {
			t.Errorf("%s: requires our modules: %t; is in go.work: %t; has its own go.work: %t", path, needs, used[folder], err == nil)
		}
		if len(m.Replace) > 0 {
			t.Errorf("%s has a replace: move it to a go.work", path)
		}
		return nil
	})
	noError(t, err)
}
