//go:build unix

package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
)

// forkExec is syscall.ForkExec for a command that may be a script without #!. It runs
// such a script with /bin/sh, as execvp and the shells do. It still refuses a program for
// another machine.
func forkExec(path string, argv []string, attr *syscall.ProcAttr) (int, error) {
	pid, err := syscall.ForkExec(path, argv, attr)
	if !errors.Is(err, syscall.ENOEXEC) || !isText(path) {
		return pid, err
	}
	if !strings.Contains(path, "/") { // so that sh does not take it for a flag, or look for it in PATH
		path = "./" + path
	}
	return syscall.ForkExec(shellName, append([]string{shellName, path}, argv[1:]...), attr)
}

// firstBytes returns the first bytes of a file, or nil if it cannot be read.
func firstBytes(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, 256))
	return text
}

// isText reports whether a file may be a script: its first line has no zero bytes.
func isText(path string) bool {
	line, _, _ := bytes.Cut(firstBytes(path), []byte("\n"))
	return bytes.IndexByte(line, 0) < 0
}

// interpreterOf returns the interpreter that a script names after #!, or "".
func interpreterOf(path string) string {
	line, _, _ := bytes.Cut(firstBytes(path), []byte("\n"))
	rest, isScript := bytes.CutPrefix(line, []byte("#!"))
	words := bytes.FieldsFunc(rest, func(r rune) bool { return r == ' ' || r == '\t' })
	if !isScript || len(words) == 0 {
		return ""
	}
	return string(words[0]) // a \r from Windows stays, because it is the mistake to report
}

// loaderOf returns the dynamic linker that a program names, or "". A program for another
// C library names another linker.
func loaderOf(path string) string {
	f, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			name, _ := io.ReadAll(p.Open())
			return strings.TrimRight(string(name), "\x00")
		}
	}
	return ""
}
