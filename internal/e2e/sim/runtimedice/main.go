// Command runtimedice writes an overlay for the go command with which the Go runtime
// repeats itself in a bubble of testing/synctest. The runtime draws by chance which ready
// case a select takes, in which order a map is walked, and which of two timers of one
// instant fires first; and it interrupts a goroutine after 10 ms of real time. With the
// overlay each bubble has dice of its own, which begin the same way, and no goroutine is
// interrupted. make sim builds the simulation so:
//
//	go test -overlay "$(go run ./internal/e2e/sim/runtimedice DIR)" ./internal/e2e/sim
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// A change is one place of a source file of the runtime, and what stands there instead.
type change struct{ file, old, new string }

// The dice are wyrand, as the runtime's own cheap dice are. Those go on as they are, for
// the runtime rolls them also for what depends on the process and not on the bubble: when
// an allocation is sampled. The seed of the process decides how large maps are laid out.
var changes = []change{
	{"synctest.go", "import (", "import (\n\t\"internal/runtime/math\""},
	{"synctest.go", "type synctestBubble struct {", "type synctestBubble struct {\n\tdice uint64"},
	{"synctest.go", "// changegstatus is called when", `//go:nosplit
func (bubble *synctestBubble) roll() uint64 {
	bubble.dice += 0xa0761d6478bd642f
	hi, lo := math.Mul64(bubble.dice, bubble.dice^0xe7037ed1a0b428db)
	return hi ^ lo
}

// changegstatus is called when`},
	{"rand.go", "\tc := &mp.chacha8\n", `	if b := getg().bubble; b != nil {
		return b.roll()
	}
	c := &mp.chacha8
`},
	{"rand.go", "\tglobalRand.state.Init(*seed)\n", "\t*seed = [32]byte{1}\n\tglobalRand.state.Init(*seed)\n"},
	{"select.go", "\t\tj := cheaprandn(uint32(norder + 1))\n", `		j := cheaprandn(uint32(norder + 1))
		if b := getg().bubble; b != nil {
			j = uint32(b.roll() % uint64(norder+1))
		}
`},
	{"time.go", "t.rand = cheaprand()", "t.rand = uint32(getg().bubble.roll())"},
	{"proc.go", "const forcePreemptNS = 10 * 1000 * 1000", "const forcePreemptNS = 1 << 60"},
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: runtimedice DIR")
		os.Exit(2)
	}
	overlay, err := write(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, overlay)
}

// write makes the changed files in dir, and the overlay that names them.
func write(dir string) (overlay string, err error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	from := filepath.Join(strings.TrimSpace(string(out)), "src", "runtime")
	files, err := changed(from)
	if err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for name, text := range files {
		to := filepath.Join(dir, name)
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(from, name)] = to
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, b, 0o600)
}

// changed is the text of each file of the runtime that is changed, by its name. A place
// that is not there exactly once is an error: this is another Go.
func changed(from string) (map[string]string, error) {
	files := map[string]string{}
	for _, c := range changes {
		if files[c.file] == "" {
			b, err := os.ReadFile(filepath.Join(from, c.file))
			if err != nil {
				return nil, err
			}
			files[c.file] = string(b)
		}
		if n := strings.Count(files[c.file], c.old); n != 1 {
			return nil, fmt.Errorf("%s of %s has %d times what runtimedice replaces, not once: %q; mend internal/e2e/sim/runtimedice for this Go",
				c.file, runtime.Version(), n, c.old)
		}
		files[c.file] = strings.Replace(files[c.file], c.old, c.new, 1)
	}
	return files, nil
}
