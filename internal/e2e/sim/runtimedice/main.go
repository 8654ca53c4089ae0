// Command runtimedice writes an overlay for the go command. With it, the Go runtime
// behaves the same in every run of a bubble of testing/synctest. The runtime decides by
// chance which ready case a select takes, in which order a map is walked, and which of
// two timers of one instant fires first. It also interrupts a goroutine after 10 ms of
// real time. With the overlay, each bubble has random numbers of its own, which always
// begin the same way, and no goroutine is interrupted. make sim builds the simulation so:
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

// A change is one place in a source file of the runtime, and its new text.
type change struct{ file, old, new string }

// The dice of a bubble are wyrand, like the runtime's own cheap random numbers. Decisions
// for the whole process, such as when to sample an allocation, still use the runtime's
// own numbers. The overlay fixes the seed of the process, because the seed decides the
// layout of large maps.
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

// write writes the changed files into dir, and the overlay that names them.
func write(dir string) (overlay string, err error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	from := filepath.Join(strings.TrimSpace(string(out)), "src", "runtime")
	files, err := changedFiles(from)
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

// changedFiles returns the text of each changed file of the runtime, by its name. It
// fails if an old text does not occur exactly once: then this is another version of Go.
func changedFiles(from string) (map[string]string, error) {
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
			return nil, fmt.Errorf("%s of %s contains this text %d times, want once: %q; adapt internal/e2e/sim/runtimedice to this version of Go",
				c.file, runtime.Version(), n, c.old)
		}
		files[c.file] = strings.Replace(files[c.file], c.old, c.new, 1)
	}
	return files, nil
}
