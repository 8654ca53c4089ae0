package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
)

// findCommand finds a command as the shell would.
func findCommand(name string) (string, error) {
	path, err := lookPath(name)
	if errors.Is(err, exec.ErrDot) { // a dot in PATH is the user's choice
		err = nil
	}
	if err != nil {
		return "", notStarted(name, "", err)
	}
	if interpreter := interpreterOf(path); interpreter != "" {
		if _, err := os.Stat(interpreter); errors.Is(err, fs.ErrNotExist) {
			return "", notStarted(name, path, err)
		}
	}
	return path, nil
}

// lookPath is exec.LookPath, but if PATH is not set it searches /bin and /usr/bin, as
// execvp does.
func lookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if _, set := os.LookupEnv("PATH"); err == nil || set || name != filepath.Base(name) {
		return path, err
	}
	for _, folder := range []string{"/bin", "/usr/bin"} {
		if path, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
			return path, nil
		}
	}
	return path, err
}

// notStarted returns the exit error for a command that could not run, with the codes that
// shells use. path is the file that was found for it, or empty. For a missing interpreter
// the system returns the same error as for a missing command, so notStarted checks the
// interpreter.
func notStarted(name, path string, err error) error {
	missing := errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)
	interpreter := ""
	if path != "" && (missing || errors.Is(err, fs.ErrPermission)) {
		interpreter = interpreterOf(path)
		if interpreter == "" {
			interpreter = loaderOf(path)
		}
	}
	switch {
	case missing && interpreter != "":
		return &exit{code: exitNotFound, err: fmt.Errorf("%s: interpreter %s not found", words.QuoteIfNeeded(name), words.QuoteIfNeeded(interpreter))}
	case missing:
		return &exit{code: exitNotFound, err: fmt.Errorf("%s: command not found", words.QuoteIfNeeded(name))}
	}
	for cause := errors.Unwrap(err); cause != nil; cause = errors.Unwrap(err) {
		err = cause // without the path, which the message would repeat
	}
	if _, lookErr := exec.LookPath(interpreter); interpreter != "" && lookErr != nil {
		return &exit{code: exitNotExecutable, err: fmt.Errorf("%s: interpreter %s cannot be executed: %w", words.QuoteIfNeeded(name), words.QuoteIfNeeded(interpreter), err)}
	}
	return &exit{code: exitNotExecutable, err: fmt.Errorf("%s: cannot be executed: %w", words.QuoteIfNeeded(name), err)}
}
