// Package testservers builds the servers that are Go modules, for tests. Each is a module
// of its own in a folder here, so that no other module depends on what it requires. The
// first build takes a minute or two, and needs the module proxy; `make test` does it
// before any test runs.
package testservers

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
)

// TB has the methods of a *testing.T that this package needs.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// Build builds the server in the folder of that name, and returns the path of the file.
// If it cannot be built, the test is skipped, or fails if PAWL_TEST_REQUIRE is set.
func Build(tb TB, name string) (path string) {
	tb.Helper()
	skipWithoutServers(tb)
	root, err := checkout()
	if err != nil {
		tb.Fatalf("the server %s cannot be built: %v", name, err)
	}
	path = filepath.Join(root, "bin", "testservers", name)
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	mu.Lock()
	defer mu.Unlock()
	if built[name] {
		return path
	}
	if said, err := build(filepath.Join(root, "internal", "testservers", name), path); err != nil {
		if os.Getenv("PAWL_TEST_REQUIRE") != "" {
			tb.Fatalf("the server %s cannot be built: %v\n%s", name, err, said)
		}
		tb.Skipf("the server %s cannot be built: %v\n%s\ngo build -C internal/testservers/%s says more", name, err, said, name)
	}
	built[name] = true
	return path
}

var (
	mu    sync.Mutex // protects built; held while something is built
	built = map[string]bool{}
)

// checkout returns the folder of the repository, which contains the working directory.
// The binary does not know it, because make test builds with -trimpath.
func checkout() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "internal", "testservers")); err == nil {
			return folder, nil
		}
		above := filepath.Dir(folder)
		if above == folder {
			return "", errors.New("the working directory is not in a checkout of the repository")
		}
		folder = above
	}
}

// workspace returns the go.work of a module that requires ours.
func workspace(module string) string {
	path := filepath.Join(module, "go.work")
	if _, err := os.Stat(path); err != nil {
		return "off"
	}
	return path
}

// build lets the go command decide whether a build is needed. Tests of several packages
// run at the same time, so a lock lets one of them build.
func build(module, path string) (said []byte, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, err
	}
	unlock, err := lock(path + ".lock")
	if err != nil {
		return nil, err
	}
	defer unlock()
	// With the flags that make built has, Go finds all packages in its cache.
	c := exec.Command("go", "build", "-C", module, "-trimpath", "-buildvcs=false", "-o", path, ".")
	c.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0", "GOWORK="+workspace(module))
	return c.CombinedOutput()
}
