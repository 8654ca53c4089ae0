// Package modules_test installs the command and builds programs of users from modules in
// the form of a release, without a release.
package modules_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/backends"
)

// clients are the modules whose versions a user chooses. Each has an old version, and the
// packages that need the module.
var clients = map[string]client{
	"github.com/go-co-op/gocron/v2":       {"v2.11.0", "cronlock"},
	"github.com/robfig/cron/v3":           {"v3.0.1", "cronlock"},
	"go.opentelemetry.io/otel":            {"v1.28.0", "otellock etcdlock"}, // gRPC requires it
	"github.com/spf13/cobra":              {"v1.8.0", "the command"},
	"github.com/alicebob/miniredis/v2":    {"v2.30.0", "tests"},
	"github.com/prometheus/client_golang": {"v1.18.0", "etcdlock"}, // etcd's gateway requires it, too
}

type client struct{ version, neededBy string }

func init() {
	for _, b := range backends.All {
		for path, version := range b.Clients {
			clients[path] = client{version, b.Folder}
		}
	}
}

var requireLine = regexp.MustCompile(`(?m)^(?:require |\t)(\S+) (v\S+)`)

// requirements returns the requirements in the go.mod of a folder.
func requirements(t *testing.T, folder string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	noError(t, err)
	found := map[string]string{}
	for _, m := range requireLine.FindAllStringSubmatch(string(text), -1) {
		found[m[1]] = m[2]
	}
	return found
}

func TestAnImportOfABackendMovesOnlyItsClient(t *testing.T) {
	skipIfShort(t, "it builds a program for each backend")
	p := packModules(t)
	for _, backend := range releasedFolders(t) {
		if backend == "cmd/pawl" {
			continue
		}
		imported := backend
		if backend == "." {
			imported = "memlock"
		}
		t.Run(imported, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			program := fmt.Sprintf("package main\n\nimport (\n\t_ %q\n\t_ %q\n)\n\nfunc main() {}\n", modulePath, modulePath+"/"+imported)
			mod := "module example.com/user\n\ngo 1.26.0\n\nrequire (\n"
			for path, pinned := range clients {
				mod += "\t" + path + " " + pinned.version + "\n"
			}
			for name, text := range map[string]string{"main.go": program, "go.mod": mod + ")\n"} {
				noError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
			}
			p.run(t, folder, "get", pathOf(backend)+"@latest")
			p.run(t, folder, "build", "-o", os.DevNull, ".")
			for path, got := range requirements(t, folder) {
				pinned, isClient := clients[path]
				switch {
				case !isClient || got == pinned.version:
				case slices.Contains(strings.Fields(pinned.neededBy), imported):
					t.Logf("%s moves from %s to %s", path, pinned.version, got)
				default:
					t.Errorf("%s moves %s from %s to %s", imported, path, pinned.version, got)
				}
			}

			// In a go.mod without versions, go get adds only what the program needs.
			noError(t, os.WriteFile(filepath.Join(folder, "go.mod"), []byte("module example.com/user\n\ngo 1.26.0\n"), 0o600))
			p.run(t, folder, "get", pathOf(backend)+"@latest")
			for path := range requirements(t, folder) {
				if client, ok := clients[path]; ok && !slices.Contains(strings.Fields(client.neededBy), imported) {
					t.Errorf("%s requires %s", imported, path)
				}
			}
		})
	}
}

func TestTheCommandCanBeInstalled(t *testing.T) {
	skipIfShort(t, "it builds the command")
	p := packModules(t)
	folder := t.TempDir()
	p.run(t, folder, "install", modulePath+"/cmd/pawl@latest")
	out, err := exec.CommandContext(t.Context(), filepath.Join(folder, "pawl"), "version").Output()
	if err != nil || !strings.Contains(string(out), "pawl "+p.version) {
		t.Errorf("pawl version printed %q, %v; want %s", out, err, p.version)
	}
}
