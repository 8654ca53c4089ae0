package doctable

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const head = "| backend | URL |"

func document(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.md")
	text := "# X\n\n" + head + "\n|---|---|\n| b | 1 |\n| a | 2 |\n| gone | 3 |\n\nText.\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// failureRecorder collects the failures of a test, instead of failing it.
type failureRecorder struct{ all []string }

func (*failureRecorder) Helper() {}
func (f *failureRecorder) Errorf(format string, args ...any) {
	f.all = append(f.all, fmt.Sprintf(format, args...))
}
func (f *failureRecorder) Fatalf(format string, args ...any) { f.Errorf(format, args...) }

func TestOtherRowsFailTheTest(t *testing.T) {
	file, tb := document(t), &failureRecorder{}
	if Want(tb, file, head, []string{"| a | 2 |", "| gone | 3 |", "| b | 1 |"}); len(tb.all) > 0 {
		t.Errorf("the same rows in another order fail: %q", tb.all)
	}
	if Want(tb, file, head, []string{"| a | 2 |", "", "| b | 1 |"}); len(tb.all) != 1 || !strings.Contains(tb.all[0], "It has\n| gone | 3 |\n\nwant\n") {
		t.Errorf("a missing row gives %q, want one failure that shows it", tb.all)
	}
	if Rows(tb, file, "| other |"); len(tb.all) != 2 {
		t.Errorf("no such table: %q", tb.all)
	}
}

func TestUpdateWritesTheRowsInTheOrderOfTheDocument(t *testing.T) {
	file := document(t)
	*update = true
	defer func() { *update = false }()
	Want(t, file, head, []string{"| new | 4 |", "| a | 5 |", "| b | 1 |"})
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := "# X\n\n" + head + "\n|---|---|\n| b | 1 |\n| a | 5 |\n| new | 4 |\n\nText.\n"; string(text) != want {
		t.Errorf("%s\nwant\n%s", text, want)
	}
	if got := Rows(t, file, head)["a"]; got != "| a | 5 |" {
		t.Errorf("the row of a is %q", got)
	}
}
