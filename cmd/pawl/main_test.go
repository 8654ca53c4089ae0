package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/basictest"
)

// Functions that all tests share.
var noError, skipIfShort = basictest.NoError, basictest.SkipIfShort

func mustGet[T any](v T, err error) func(basictest.TB) T { return basictest.Must(v, err) }

// hangTime is the time after which a test reports a hang. A step takes seconds at most,
// but the machine may pause.
const hangTime = 3 * time.Minute

// patientOptions are for clients that wait while the machine pauses.
var patientOptions = &pawl.Options{RequestTimeout: time.Minute}

// shortTimeoutsVariable makes the command under test give up as early as a user's does.
const shortTimeoutsVariable = "PAWL_TEST_BRIEF"

// commandsVariable names a folder with this test binary, built without the race detector
// and named pawl. Then the tests run the command from there.
const commandsVariable = "PAWL_TEST_COMMANDS"

// The command under test is this test binary, so the race detector checks it, too. But
// with the race detector a short command takes three times as long, mostly to start. So
// make test sets commandsVariable, and make test-all does not.
func TestMain(m *testing.M) {
	if f := flag.Lookup("test.parallel"); f != nil {
		must(f.Value.Set("8")) // the tests mostly wait; a flag on the command line overrides this
	}
	// By default, a process with the race detector sleeps for a second at its end.
	must(os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0")))
	commands := map[string]func(){
		"pawl": func() {
			completionTimeout = hangTime // a loaded machine with the race detector is slow to open a file
			if os.Getenv(shortTimeoutsVariable) == "" {
				tryTimeout = hangTime
			}
			os.Exit(pawlMain())
		},
	}
	maps.Copy(commands, otherCommands)
	testscript.Main(testsWithDefaultSignals{m}, commands)
}

// testsWithDefaultSignals gives the children of tests the default actions for signals.
// The parent of the tests, such as nohup or a shell's &, may ignore a signal. Children
// inherit ignored signals, but not caught ones, so Run catches it. No command calls Run.
type testsWithDefaultSignals struct{ testscript.TestingM }

func (m testsWithDefaultSignals) Run() int {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	if folder := os.Getenv(commandsVariable); folder != "" {
		must(os.Setenv("PATH", folder+string(filepath.ListSeparator)+os.Getenv("PATH")))
		if found, err := exec.LookPath("pawl"); err != nil || filepath.Dir(found) != filepath.Clean(folder) {
			panic(fmt.Sprintf("%s=%s: found %q, %v; want pawl in this folder", commandsVariable, folder, found, err))
		}
	}
	return m.TestingM.Run()
}

// otherCommands are the commands besides pawl that tests run in processes of their own.
var otherCommands = map[string]func(){}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

func codeIs(err error, code int) bool {
	e, ok := errors.AsType[*exit](err)
	return ok && e.code == code
}
