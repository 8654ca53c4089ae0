package etcdtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// version names the folder of the server that is built: it changes with
// internal/testservers/etcd/go.mod.
const version = "etcd-3.7.3"

// built is the path of the server. It is built once, by whichever test binary comes
// first, and kept in the user's cache: that takes a minute. PAWL_TEST_ETCD is the path of
// another one, of another version.
var built = sync.OnceValues(func() (string, error) {
	if other := os.Getenv("PAWL_TEST_ETCD"); other != "" {
		return other, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "pawl-testservers")
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as caches are
		return "", err
	}
	path := filepath.Join(dir, version)
	unlock, err := lock(path + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	source, err := source()
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-C", source, "-trimpath", "-ldflags", "-s -w", "-o", path+".new", ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, said)
	}
	return path, os.Rename(path+".new", path)
})

// source is the folder of the server's module.
func source() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		source := filepath.Join(dir, "internal", "testservers", "etcd")
		if _, err := os.Stat(source); err == nil {
			return source, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("internal/testservers/etcd is in no folder above")
		}
		dir = up
	}
}
