package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"

	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
)

// findCommand is where the command is, as the shell would find it.
func findCommand(name string) (string, error) {
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrDot) { // who has a dot in PATH wants it
		err = nil
	}
	if err != nil {
		return "", notStarted(name, "", err)
	}
	if by := interpreterOf(path); by != "" {
		if _, err := os.Stat(by); errors.Is(err, fs.ErrNotExist) {
			return "", notStarted(name, path, err)
		}
	}
	return path, nil
}

// notStarted is the exit of a command that could not be run, with the codes that shells
// use. The path is where it was found, or empty. A system that finds the command and not
// its interpreter says no more than that something is not there.
func notStarted(name, path string, err error) error {
	missing := errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)
	by := ""
	if path != "" && (missing || errors.Is(err, fs.ErrPermission)) {
		by = interpreterOf(path)
		if by == "" {
			by = loaderOf(path)
		}
	}
	switch {
	case missing && by != "":
		return &exit{code: exitNotFound, err: fmt.Errorf("%s: interpreter %s not found", words.Plain(name), words.Plain(by))}
	case missing:
		return &exit{code: exitNotFound, err: fmt.Errorf("%s: command not found", words.Plain(name))}
	}
	for cause := errors.Unwrap(err); cause != nil; cause = errors.Unwrap(err) {
		err = cause // without its path, which may be there twice
	}
	if _, found := exec.LookPath(by); by != "" && found != nil {
		return &exit{code: exitNotExecutable, err: fmt.Errorf("%s: interpreter %s cannot be executed: %w", words.Plain(name), words.Plain(by), err)}
	}
	return &exit{code: exitNotExecutable, err: fmt.Errorf("%s: cannot be executed: %w", words.Plain(name), err)}
}
