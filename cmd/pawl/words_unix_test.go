//go:build unix

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// notGolden has literals of several words that are in no golden file, and why.
var notGolden = map[string]string{
	"Write the manual pages into a folder":                 "hidden",
	".FlagUsagesWrapped 80 ":                               "a part of a template",
	"pawl %s\n%s %s/%s\nbackends: %s\n":                    "differs with each build; testdata/version.txt",
	"%s (commit %s%s)":                                     "differs with each build",
	"%s: %v with %d workers; the report will be in %s":     "needs a database; prove_unix_test.go",
	"; the others were left out by the build tag embedded": "of another build; embedded_test.go",
	"--health was ended by signal %d":                      "of a check; testdata/run_stop.txt",
	"--health ended with code %d":                          "of a check; testdata/run_stop.txt",
	"cannot use the client CA: %w":                         "needs a certificate; serve_test.go",
	"%s has no certificate":                                "needs a certificate; serve_test.go",
	"prove stops and continues processes, which Windows cannot do; run it on Linux or macOS":                             "on Windows only",
	"the token crosses the network unencrypted; use --tls-cert, or a proxy with TLS in front":                            "while it serves; serve_test.go",
	"the time of the server is not known: %q (fence %d) was lost at once: %w":                                            "needs a database that forgets at once",
	"pawl: type the fence of the lease to break: ":                                                                       "on a terminal only; terminal_linux_test.go",
	"not a fence; nothing was broken":                                                                                    "on a terminal only; terminal_linux_test.go",
	"the handle is a secret: any program that has it can release the lock; --handle FILE keeps it off the screen":        "on a terminal only; terminal_linux_test.go",
	"standard input is a terminal; pipe the handle into it, or use --handle FILE":                                        "on a terminal only; terminal_linux_test.go",
	"the default file excludes processes of this user on this host only; for other users or hosts set --url or PAWL_URL": "on a terminal only; terminal_linux_test.go",
	"the default file excludes processes of this user on this host only":                                                 "testdata/doctor.txt",
	"for other users or hosts set --url or PAWL_URL":                                                                     "testdata/doctor.txt",
	"everyone who can list processes on this host sees the password in --url; %s hides it":                               "on a terminal only; terminal_linux_test.go",
}

// Each string of several words in the source of the command is in a golden file. There,
// any text may stand for a verb such as %s.
func TestEveryWordOfTheCommandIsInAGoldenFile(t *testing.T) {
	var all strings.Builder
	files, err := filepath.Glob(filepath.Join(goldenFolder, "*"))
	scripts, _ := filepath.Glob("testdata/*.txt")
	files = append(append(files, scripts...), "top/testdata/frames.txt")
	if err != nil || len(files) == 1 || len(scripts) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text := mustGet(os.ReadFile(file))(t)
		all.Write(text)
		all.WriteString(strings.ReplaceAll(string(text), `\`, "")) // a script has patterns, with backslashes
	}
	goldenText := oneSpace(all.String())
	sources := mustGet(filepath.Glob("*.go"))(t)
	topSources := mustGet(filepath.Glob("top/*.go"))(t)
	for _, file := range append(sources, topSources...) {
		if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, "_windows.go") ||
			strings.HasSuffix(file, "_linux.go") && runtime.GOOS != "linux" {
			continue
		}
		for at, text := range literals(t, file) {
			pattern := formatVerb.ReplaceAllString(regexp.QuoteMeta(oneSpace(text)), ".*?")
			if notGolden[text] == "" && !regexp.MustCompile(pattern).MatchString(goldenText) {
				t.Errorf("%s: no golden file shows a change of %q", at, text)
			}
		}
	}
}

var (
	formatVerb   = regexp.MustCompile(`%[-0-9]*[a-z]`)
	severalWords = regexp.MustCompile(`[a-z]{2,} [a-z%-]`)
	spaces       = regexp.MustCompile(`\s+`)
)

// oneSpace unwraps a text and removes the backquotes of a flag's help, to compare texts.
func oneSpace(s string) string {
	return strings.TrimSpace(spaces.ReplaceAllString(strings.ReplaceAll(s, "`", ""), " "))
}

// literals returns the strings of several words in a file, by their positions.
func literals(t *testing.T, file string) map[string]string {
	t.Helper()
	set := token.NewFileSet()
	f := mustGet(parser.ParseFile(set, file, nil, 0))(t)
	found := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil && severalWords.MatchString(text) {
				found[set.Position(lit.Pos()).String()] = text
			}
		}
		return true
	})
	return found
}
