package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
)

// A backend's text may have several lines. Each stays a line, and moves no cursor.
func TestFindingsKeepTheirLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := printFindings(&out, []pawl.Finding{{Severity: "error", Subject: "file", Detail: "quick_check says:\n  page 3\x1b[2J\npage 4\n", Advice: "stop\nall"}})
	noError(t, err)
	want := `error    file: quick_check says:
         page 3\x1b[2J
         page 4
         stop
         all
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
}

func TestJoinedErrorsArePrintedOnOneLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	v := &output{err: &out}
	v.sayError(joinedError{"pawl: one\npawl: two\n"})
	if got := out.String(); got != "pawl: one; two\n" || strings.Contains(got, `\n`) {
		t.Errorf("it prints %q", got)
	}
}

type joinedError struct{ text string }

func (j joinedError) Error() string { return j.text }
