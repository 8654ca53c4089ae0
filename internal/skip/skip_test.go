package skip_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-go/pawl/internal/skip"
)

func TestUnprovenAppendsToTheList(t *testing.T) {
	file := filepath.Join(t.TempDir(), "list")
	t.Setenv(skip.List, file)
	for range 2 {
		t.Run("one", func(t *testing.T) { skip.Unproven(t, "%d discs", 2) })
	}
	t.Setenv(skip.List, "")
	t.Run("without a list", func(t *testing.T) { skip.Unproven(t, "no reason") })
	got, err := os.ReadFile(file)
	want := "UNPROVEN: TestUnprovenAppendsToTheList/one: 2 discs\nUNPROVEN: TestUnprovenAppendsToTheList/one#01: 2 discs\n"
	if err != nil || string(got) != want {
		t.Errorf("the list is %q, %v; want %q", got, err, want)
	}
}
