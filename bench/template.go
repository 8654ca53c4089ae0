package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// templates are folders with installed databases, by installer. Each turn begins with an
// empty server. Installing a database takes a second or two, but copying one a tenth of
// that.
var templates = map[string]string{}

// installDatabase makes a folder for a server, with an installed database in its
// subfolder "data". The first call for an installer runs it, with the command of install,
// and keeps the database; later calls copy it. If this process is root, the folders
// belong to an unprivileged user.
func installDatabase(installer string, install func(data string) *exec.Cmd) (dir string, err error) {
	if templates[installer] == "" {
		first, err := os.MkdirTemp("", "pawl-bench-template")
		if err != nil {
			return "", err
		}
		cmd := install(filepath.Join(first, "data"))
		if err := dropPrivileges(cmd, first); err != nil {
			return "", err
		}
		cmd.Dir = first
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("install a database with %s: %w\n%s", installer, err, out)
		}
		templates[installer] = first
	}
	if dir, err = os.MkdirTemp("", "pawl-bench"); err != nil {
		return "", err
	}
	from, to := filepath.Join(templates[installer], "data"), filepath.Join(dir, "data")
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return dir, nil
}

func removeTemplates() {
	for _, dir := range templates {
		_ = os.RemoveAll(dir)
	}
}
