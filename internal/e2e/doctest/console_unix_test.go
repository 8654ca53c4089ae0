//go:build unix

package doctest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/bubble"
)

// consoleBlock is the info string of a Markdown block whose commands the test runs.
const consoleBlock = "console run"

// pawlCommand builds the command once for all pages, and returns its folder.
var pawlCommand = sync.OnceValues(func() (folder string, err error) {
	if commandFolder, err = os.MkdirTemp("", "pawl-doctest-"); err != nil {
		return "", err
	}
	overlay, err := longTimeoutOverlay(commandFolder)
	if err != nil {
		return "", err
	}
	// With the flags of this test, the build cache already has all packages.
	cmd := exec.Command("go", "build", "-buildvcs=false", "-trimpath", fmt.Sprintf("-race=%t", bubble.RaceDetector),
		"-overlay", overlay, "-o", filepath.Join(commandFolder, "pawl"), "github.com/pawl-go/pawl/cmd/pawl")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return commandFolder, nil
})

var commandFolder string // TestMain removes it

// longTimeoutOverlay writes an overlay for go build in which pawl -n waits for minutes,
// not for seconds. So pawl -n survives a pause of the test machine.
func longTimeoutOverlay(folder string) (overlay string, err error) {
	const shippedTimeout, longTimeout = "tryTimeout = 3 * time.Second", "tryTimeout = 3 * time.Minute"
	file, err := filepath.Abs(filepath.Join(root, "cmd/pawl/timeouts.go"))
	if err != nil {
		return "", err
	}
	code, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if !bytes.Contains(code, []byte(shippedTimeout)) {
		return "", fmt.Errorf("%s has no %q", file, shippedTimeout)
	}
	changed := filepath.Join(folder, "timeouts.go")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{file: changed}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(folder, "overlay.json")
	return overlay, errors.Join(os.WriteFile(changed, bytes.Replace(code, []byte(shippedTimeout), []byte(longTimeout), 1), 0o600),
		os.WriteFile(overlay, replace, 0o600))
}

// TestPageCommandsPrintTheShownOutput runs the marked blocks of each page in one shell,
// in a folder of its own. It compares the output of each command with the page.
func TestPageCommandsPrintTheShownOutput(t *testing.T) {
	commands := 0
	t.Run("pages", func(t *testing.T) {
		for _, page := range pages(t) {
			var run []*command
			for _, b := range blocks(t, page) {
				if b.info == consoleBlock {
					run = append(run, b.commands()...)
				}
			}
			if commands += len(run); len(run) > 0 {
				t.Run(strings.TrimSuffix(page, ".md"), func(t *testing.T) {
					t.Parallel()
					runPage(t, page, run)
				})
			}
		}
	})
	if commands < 40 {
		t.Errorf("only %d commands were found: is the mark right?", commands)
	}
}

// runPage runs the commands of a page, and compares their output.
func runPage(t *testing.T, page string, run []*command) {
	t.Helper()
	for i, printed := range runShell(t, startServersFor(t, page), run) {
		if c := run[i]; !normalizedLinesMatch(c.shown, printed) {
			t.Errorf("%s:%d: $ %s\nshows\n%s\nbut printed\n%s", page, c.pageLine, c.line, strings.Join(c.shown, "\n"), strings.Join(printed, "\n"))
		}
	}
}

// noRaceExitPause disables the pause of one second at the end of a program that was built
// with the race detector.
const noRaceExitPause = "GORACE=atexit_sleep_ms=0"

// mark follows the output of each command, with its exit code.
const mark = "\x01"

var markLine = regexp.MustCompile(mark + `(\d+)\n`)

// runShell runs commands in one shell, and returns the lines that each prints. A command
// that fails has one more line, with its exit code.
func runShell(t *testing.T, names nameMap, run []*command) (printed [][]string) {
	t.Helper()
	bin, err := pawlCommand()
	noError(t, err)
	home := t.TempDir()
	script := "exec 2>&1\n"
	for _, c := range run {
		script += "{ " + names.toTest(c.line) + "\n}\nprintf '\\001%d\\n' $?\n"
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	sh := exec.CommandContext(ctx, "sh", "-c", script)
	sh.Dir = home
	sh.Env = []string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + home, "TZ=UTC", "LC_ALL=C.UTF-8", noRaceExitPause}
	var out bytes.Buffer
	sh.Stdout = &out
	if err := sh.Run(); err != nil {
		t.Fatalf("the shell: %v\n%s", err, &out)
	}
	text := out.String()
	for range run {
		end := markLine.FindStringSubmatchIndex(text)
		if end == nil {
			t.Fatalf("the shell ended early:\n%s", &out)
		}
		printed = append(printed, linesOf(names, text[:end[0]], text[end[2]:end[3]]))
		text = text[end[1]:]
	}
	return printed
}

// linesOf returns the lines that a command printed, in the form of the page.
func linesOf(names nameMap, text, code string) (lines []string) {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	text = regexp.MustCompile(`\b`+regexp.QuoteMeta(host)+`:\d+`).ReplaceAllString(names.asOnPage(text), "web-1:4242")
	if text = strings.TrimSuffix(text, "\n"); text != "" {
		lines = strings.Split(text, "\n")
	}
	if code != "0" {
		lines = append(lines, "[exit code "+code+"]")
	}
	return lines
}
