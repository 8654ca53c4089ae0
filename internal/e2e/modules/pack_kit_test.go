package modules_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/basictest"
)

// Short names for the helpers of all tests.
var noError, skipIfShort = basictest.NoError, basictest.SkipIfShort

const (
	root       = "../../.."
	modulePath = "github.com/pawl-go/pawl"
)

// releasedFolders returns the folders of the modules of a release, the root's first.
func releasedFolders(t *testing.T) (folders []string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "work", "edit", "-json", filepath.Join(root, "go.work")).Output()
	noError(t, err)
	var work struct{ Use []struct{ DiskPath string } }
	noError(t, json.Unmarshal(out, &work))
	for _, use := range work.Use {
		folder := filepath.ToSlash(filepath.Clean(use.DiskPath))
		if folder != "examples" && folder != "internal/e2e" {
			folders = append(folders, folder)
		}
	}
	return folders
}

func pathOf(folder string) string {
	return strings.TrimSuffix(modulePath+"/"+strings.TrimPrefix(folder, "."), "/")
}

// A proxy is a GOPROXY on disk. It has the modules of this repository, all in one version
// that no other proxy has.
type proxy struct {
	folder, version string
	env             []string
}

// skipWithoutProxy skips a test in which the go command may download modules, if the
// tests must not use the network.
func skipWithoutProxy(t *testing.T) {
	t.Helper()
	if os.Getenv("PAWL_TEST_SERVERS") == "none" {
		t.Skip("PAWL_TEST_SERVERS=none: this test needs a module proxy")
	}
}

func packModules(t *testing.T) *proxy {
	t.Helper()
	skipWithoutProxy(t)
	p := &proxy{folder: t.TempDir(), version: fmt.Sprintf("v0.999.%d", time.Now().UnixNano())}
	folders := releasedFolders(t)
	for _, folder := range folders {
		p.add(t, folder)
	}
	settings := map[string]string{}
	out, err := exec.CommandContext(t.Context(), "go", "env", "-json", "GOMODCACHE", "GOPROXY").Output()
	if err == nil {
		err = json.Unmarshal(out, &settings)
	}
	noError(t, err)
	cache := settings["GOMODCACHE"]
	p.env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -modcacherw", "GOSUMDB=off",
		"GOPROXY="+asURL(p.folder)+","+asURL(filepath.Join(cache, "cache", "download"))+","+settings["GOPROXY"])
	t.Cleanup(func() { // removes the modules of p from the cache
		for _, folder := range folders {
			path := filepath.FromSlash(pathOf(folder))
			_ = os.RemoveAll(filepath.Join(cache, path+"@"+p.version))
			left, _ := filepath.Glob(filepath.Join(cache, "cache", "download", path, "@v", p.version+".*"))
			for _, file := range left {
				_ = os.Remove(file)
			}
		}
	})
	return p
}

func asURL(folder string) string {
	folder = filepath.ToSlash(folder)
	return "file:///" + strings.TrimPrefix(folder, "/")
}

// add packs the module in a folder.
func (p *proxy) add(t *testing.T, folder string) {
	t.Helper()
	at := filepath.Join(p.folder, filepath.FromSlash(pathOf(folder)), "@v")
	noError(t, os.MkdirAll(at, 0o750))
	mod, err := os.ReadFile(filepath.Join(root, folder, "go.mod"))
	noError(t, err)
	mod = bytes.ReplaceAll(mod, []byte(" v0.0.0\n"), []byte(" "+p.version+"\n"))
	info := fmt.Appendf(nil, `{"Version":%q,"Time":"2026-11-23T00:00:00Z"}`, p.version)
	for name, text := range map[string][]byte{"list": []byte(p.version + "\n"), p.version + ".info": info, p.version + ".mod": mod, p.version + ".zip": p.zip(t, folder, mod)} {
		noError(t, os.WriteFile(filepath.Join(at, name), text, 0o600))
	}
}

// zip returns the files of a module, without the modules below it.
func (p *proxy) zip(t *testing.T, folder string, mod []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	top := filepath.Join(root, folder)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, err := os.Stat(filepath.Join(path, "go.mod"))
			if path != top && (err == nil || d.Name() == "bin" || strings.HasPrefix(d.Name(), ".")) {
				return fs.SkipDir
			}
			return nil
		}
		name, err := filepath.Rel(top, path)
		if err != nil || !d.Type().IsRegular() || strings.HasPrefix(d.Name(), "go.work") {
			return err
		}
		text := mod
		if name != "go.mod" {
			if text, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		w, err := z.Create(pathOf(folder) + "@" + p.version + "/" + filepath.ToSlash(name))
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	})
	if err == nil {
		err = z.Close()
	}
	noError(t, err)
	return b.Bytes()
}

// run runs the go command for a user, in a folder.
func (p *proxy) run(t *testing.T, folder string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = folder, slices.Concat(p.env, []string{"GOBIN=" + folder})
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
