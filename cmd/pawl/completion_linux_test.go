package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
)

// unsafeParts has texts that a shell would run, or would not take literally.
var unsafeParts = []string{
	"`touch canary`", "$(touch canary)", "${IFS}", "$HOME", "<(touch canary)", ";touch canary", "&touch canary", "|touch canary",
	">canary", "'", `"`, `\`, " ", "\u00a0", "\u200b", "\u202e", "\u201c", "~", "!", "!!", "*", "?", "[a]", "{a,b}", "#", "%self", "^a^b",
}

func TestCompletionOffersPlainNamesOnly(t *testing.T) {
	b := newLab(t)
	plain := []string{"+1", "/a/b", "a-b_c.d:e@f,g=h+1", "größe", "日本", "हिन्दी"}
	held := append([]string{"-rf", "=ls", "_activeHelp_ x"}, plain...)
	for r := rune(' '); r < 0x7f; r++ {
		held = append(held, "a"+string(r))
		if r == '_' || strings.ContainsRune("+,-./0123456789:=@", r) || 'a' <= r|0x20 && r|0x20 <= 'z' {
			plain = append(plain, "a"+string(r))
		}
	}
	for _, part := range unsafeParts {
		held = append(held, part, "x"+part+"y")
	}
	b.hold(held...)
	p, code := b.run("__complete", "show", "")
	if code != 0 {
		t.Fatal(p.stderr.String())
	}
	offered := strings.Split(strings.TrimSpace(p.stdout.String()), "\n")
	if last := len(offered) - 1; offered[last] != ":4" {
		t.Errorf("the directive is %s, so the shell completes files", offered[last])
	} else if got, want := offered[:last], slices.Sorted(slices.Values(plain)); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("pawl offers\n%q, want\n%q", got, want)
	}
}

// Real shells run the scripts of pawl completion. The script of cobra for bash escapes a
// single candidate, but inserts the common beginning of several unescaped. The next TAB
// evaluates the line.
func TestCompletionRunsNothing(t *testing.T) {
	shells := map[string]struct{ start, setUp []string }{
		"bash": {[]string{"bash", "--norc", "-i"}, []string{". /usr/share/bash-completion/bash_completion", ". <(pawl completion bash)"}},
		"zsh":  {[]string{"zsh", "-f", "-i"}, []string{"autoload -Uz compinit; compinit -u -D", ". <(pawl completion zsh)"}},
		"fish": {[]string{"fish", "--no-config", "-i"}, []string{"pawl completion fish | source"}},
	}
	payloads := []string{"`>canary`", "$(>canary)", "(touch canary)", ";>canary;", "|touch canary "}
	for name, shell := range shells {
		t.Run(name, func(t *testing.T) {
			needShell(t, shell.start[0])
			b := newLab(t)
			names := []string{"safe-1", "safe-2"}
			for i, payload := range payloads {
				names = append(names, fmt.Sprint("pair", i)+payload+"1", fmt.Sprint("pair", i)+payload+"2", fmt.Sprint("one", i)+payload)
			}
			b.hold(names...)
			for _, payload := range payloads {
				mustGet(b.c.Semaphore("fences", len(payloads), pawl.WithLabel("a", payload)).Acquire(t.Context(), 1))(t)
			}
			s := b.startShell(shell.start...)
			for _, line := range shell.setUp {
				s.runLine(line)
			}
			s.runLine("pawl show --json sa\t1 >out")
			if got := b.read("out"); !strings.Contains(got, `"safe-1"`) {
				t.Errorf("the completed command printed %q", got)
			}
			for i := range payloads {
				s.runLine("pawl show " + fmt.Sprint("pair", i) + "\t\t")
				s.runLine("pawl show " + fmt.Sprint("one", i) + "\t\t")
			}
			s.runLine("pawl break fences --fence \t0\t")
			if _, err := os.Stat(b.file("canary")); err == nil {
				t.Errorf("the shell ran a part of a name; the terminal shows\n%s", s.text())
			}
		})
	}
}

// runLine types a line, and waits until the shell has run it.
func (s *shell) runLine(line string) {
	s.b.t.Helper()
	s.line(line)
	s.linesRun++
	done := fmt.Sprint("done", s.linesRun)
	s.line("echo done >" + done)
	if err := poll(func() bool { return s.b.read(done) != "" }); err != nil {
		s.b.t.Fatalf("%q: %v; the terminal shows\n%s", line, err, s.text())
	}
}

func needShell(t *testing.T, name string) {
	t.Helper()
	_, err := exec.LookPath(name)
	if err == nil && name == "bash" {
		_, err = os.Stat("/usr/share/bash-completion/bash_completion")
	}
	if err != nil && os.Getenv("PAWL_TEST_REQUIRE") == "" {
		t.Skipf("%v: make test installs it", err)
	} else if err != nil {
		t.Fatal(err)
	}
}
