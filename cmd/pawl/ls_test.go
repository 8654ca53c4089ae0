package main

import (
	"bytes"
	"database/sql"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
)

// damagedFile returns the URL of a file in which names are held, some of them with
// damaged rows.
func damagedFile(t *testing.T, held, damaged []string) (url string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "locks.db")
	c := mustGet(pawl.Open(t.Context(), fileURL(path), patientOptions))(t)
	t.Cleanup(func() { _ = closeSoon(c) })
	for _, name := range held {
		mustGet(c.Mutex(name).Lock(t.Context()))(t)
	}
	db := mustGet(sql.Open("sqlite", path))(t)
	defer db.Close()
	for _, name := range damaged {
		mustGet(db.ExecContext(t.Context(), "UPDATE entries SET entry = x'3f' WHERE name = CAST(? AS BLOB)", name))(t)
	}
	return fileURL(path)
}

// Ls reports each damaged row, and lists all other names.
func TestLsListsTheNamesAfterADamagedRow(t *testing.T) {
	t.Parallel()
	url := damagedFile(t, []string{"a", "b", "c", "d"}, []string{"b", "d"})
	for _, flag := range []string{"", "--json"} {
		var out, messages bytes.Buffer
		args := append([]string{"ls", "--url", url}, strings.Fields(flag)...)
		if code := execute(&output{out: &out, err: &messages}, args); code != exitUnavailable {
			t.Errorf("ls %s: exit code %d, want %d", flag, code, exitUnavailable)
		}
		for _, name := range []string{"a", "c"} {
			if begin := map[string]string{"": "\n" + name + " ", "--json": `{"name":"` + name + `"`}[flag]; !strings.Contains("\n"+out.String(), begin) {
				t.Errorf("ls %s does not list %s:\n%s", flag, name, &out)
			}
		}
		lines := strings.Split(strings.TrimSpace(messages.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], `list "b": `) || !strings.Contains(lines[1], `list "d": `) {
			t.Errorf("ls %s printed\n%s", flag, &messages)
		}
	}
}

func TestANameWithADamagedRowIsCompleted(t *testing.T) {
	t.Parallel()
	url := damagedFile(t, []string{"a", "b", "c"}, []string{"b"})
	// On a loaded machine, completion in this process could time out. A command of
	// TestMain has long timeouts.
	out, err := exec.CommandContext(t.Context(), "pawl", "__complete", "--url", url, "show", "").Output()
	if err != nil || !strings.HasPrefix(string(out), "a\nb\nc\n") {
		t.Errorf("completed with\n%s%v", out, err)
	}
}
