//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pawl-go/pawl"
)

// The scripts in testdata test the statements of the manual. Besides the commands of
// testscript, they have:
//
//	exits CODE COMMAND...           run it, and want that exit code
//	waitfor held|free|closed NAME   wait until the name is held, free or closed
//	waitfor waiters N NAME          wait until N claims wait for the name
//	waitfor file FILE               wait until the file exists
//	mode FILE PERM                  check that the file has these permissions
func TestScripts(t *testing.T) { runScripts(t, "testdata", "") }

// runScripts runs the scripts of a directory with this backend; "" is the default.
func runScripts(t *testing.T, dir, url string) {
	testscript.Run(t, testscript.Params{
		Dir: dir,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
			if url != "" {
				env.Setenv("PAWL_URL", url)
			}
			env.Setenv("GORACE", os.Getenv("GORACE"))
			env.Setenv("ESC", "\x1b")
			env.Setenv("TAB", "\t")
			env.Setenv("BIDI", "\u202e") // right-to-left override
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":   scriptExits,
			"waitfor": scriptWaitfor,
			"mode":    scriptMode,
		},
	})
}

func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exitErr, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		code = exitErr.ExitCode()
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

func scriptWaitfor(ts *testscript.TestScript, _ bool, args []string) {
	what, rest := args[0], args[1:]
	if what == "file" {
		err := poll(func() bool { _, err := os.Stat(ts.MkAbs(rest[0])); return err == nil })
		ts.Check(err)
		return
	}
	url := ts.Getenv("PAWL_URL")
	if url == "" {
		url = fileURL(filepath.Join(ts.Getenv("XDG_STATE_HOME"), "pawl", "locks.db"))
	}
	c, err := pawl.Open(context.Background(), url, patientOptions)
	ts.Check(err)
	defer func() { ts.Check(closeSoon(c)) }()
	name := rest[len(rest)-1]
	var e pawl.Entry
	err = poll(func() bool {
		e, err = c.Inspect(context.Background(), name)
		ts.Check(err)
		switch what {
		case "held":
			return len(e.Holders) > 0
		case "free":
			return len(e.Holders) == 0 && e.ClosedFor == 0
		case "closed":
			return e.ClosedFor > 0
		case "waiters":
			return strconv.Itoa(len(e.Waiters)) == rest[0]
		}
		ts.Fatalf("waitfor does not know %q", what)
		return false
	})
	if err != nil {
		ts.Fatalf("%v: %+v", err, e)
	}
}

// mode FILE PERM checks the permissions of a file.
func scriptMode(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	if got := fmt.Sprintf("%04o", info.Mode().Perm()); got != args[1] {
		ts.Fatalf("%s has the mode %s, want %s", args[0], got, args[1])
	}
}
