// Package testservers builds servers for tests from Go modules. Each server has its own
// module in a folder here, so that no other module depends on the server's requirements.
// The first build takes a minute or two, and needs the module proxy. `make test` builds
// before it runs tests.
package testservers

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
)

// TB has the methods of *testing.T that this package uses.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// Build builds the server in the folder of this name, and returns the path of the
// executable. If the build fails, Build skips the test, or fails it if PAWL_TEST_REQUIRE
// is set.
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
	if output, err := build(filepath.Join(root, "internal", "testservers", name), path); err != nil {
		if os.Getenv("PAWL_TEST_REQUIRE") != "" {
			tb.Fatalf("the server %s cannot be built: %v\n%s", name, err, output)
		}
		tb.Skipf("the server %s cannot be built: %v\n%s\ngo build -C internal/testservers/%s shows more", name, err, output, name)
	}
	built[name] = true
	return path
}

var (
	mu    sync.Mutex // protects built; held during a build
	built = map[string]bool{}
)

// checkout returns the folder of the repository that contains the working directory. The
// binary has no path of its source, because make test builds with -trimpath.
func checkout() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "internal", "testservers")); err == nil {
			return folder, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", errors.New("the working directory is not in a checkout of the repository")
		}
		folder = parent
	}
}

// workspace returns the value of GOWORK: the go.work of a module that requires this one,
// or off.
func workspace(module string) string {
	path := filepath.Join(module, "go.work")
	if _, err := os.Stat(path); err != nil {
		return "off"
	}
	return path
}

// build runs go build, which decides whether a build is needed. A lock lets only one
// process build, because tests of several packages run at the same time.
func build(module, path string) (output []byte, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, err
	}
	unlock, err := lock(path + ".lock")
	if err != nil {
		return nil, err
	}
	defer unlock()
	// With the flags of make built, Go finds all packages in its cache.
	c := exec.Command("go", "build", "-C", module, "-trimpath", "-buildvcs=false", "-o", path, ".")
	c.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0", "GOWORK="+workspace(module))
	return c.CombinedOutput()
}
