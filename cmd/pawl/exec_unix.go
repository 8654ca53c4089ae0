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

// forkExec is syscall.ForkExec for a command that may be a script without an interpreter:
// that is one for /bin/sh, as execvp and the shells have it. A program for another
// machine is none.
func forkExec(path string, argv []string, attr *syscall.ProcAttr) (int, error) {
	pid, err := syscall.ForkExec(path, argv, attr)
	if !errors.Is(err, syscall.ENOEXEC) || !isText(path) {
		return pid, err
	}
	if !strings.Contains(path, "/") { // no flag of the shell, and nothing to look for in PATH
		path = "./" + path
	}
	return syscall.ForkExec(shellName, append([]string{shellName, path}, argv[1:]...), attr)
}

// begin is how a file begins. One that cannot be read is empty.
func begin(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, 256))
	return text
}

// isText reports whether a file is no program: in the first line of a script there are no
// zeros.
func isText(path string) bool {
	line, _, _ := bytes.Cut(begin(path), []byte("\n"))
	return bytes.IndexByte(line, 0) < 0
}

// interpreterOf is what the #! of a script names, or empty.
func interpreterOf(path string) string {
	line, _, _ := bytes.Cut(begin(path), []byte("\n"))
	rest, is := bytes.CutPrefix(line, []byte("#!"))
	words := bytes.FieldsFunc(rest, func(r rune) bool { return r == ' ' || r == '\t' })
	if !is || len(words) == 0 {
		return ""
	}
	return string(words[0]) // with the \r of a script that was written on Windows, which is then what is wrong
}

// loaderOf is the dynamic linker that a program names, or empty: one for another C
// library has another.
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
