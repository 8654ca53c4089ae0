// Package natstest starts real NATS servers for tests, alone or as a cluster, on free
// ports and in temporary folders, and stops them when the test ends. The server is built
// once, from the module in internal/testservers/nats. Where that cannot be built the test
// is skipped, or fails if PAWL_TEST_REQUIRE is set.
package natstest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
)

// server is the path of the binary. It is named after what it was built from, so that it
// is built again when that changes, and stands in the user's cache.
var server = sync.OnceValues(func() (string, error) {
	_, here, _, _ := runtime.Caller(0)
	from := filepath.Join(filepath.Dir(here), "..", "testservers", "nats")
	name := sha256.New()
	for _, file := range []string{"go.mod", "go.sum", "main.go"} {
		text, err := os.ReadFile(filepath.Join(from, file))
		if err != nil {
			return "", err
		}
		name.Write(text)
	}
	name.Write([]byte(runtime.Version()))
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "pawl-test")
	binary := filepath.Join(folder, "nats-server-"+hex.EncodeToString(name.Sum(nil)[:6]))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	unlock, err := lock(binary + ".lock") // other packages' tests may be about to build it, too
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	build := exec.Command("go", "build", "-C", from, "-o", binary+".new", ".")
	build.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
	if said, err := build.CombinedOutput(); err != nil {
		return "", errors.New("go build: " + err.Error() + "\n" + string(said))
	}
	return binary, os.Rename(binary+".new", binary)
})
