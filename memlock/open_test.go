package memlock_test

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/memlock"
)

// Drivers with the same name share a memory, which outlives them.
func TestURLsWithTheSameNameShareAMemory(t *testing.T) {
	url := "mem:Jobs" + rand.Text() // a new name, because a named memory stays for a second run in this process
	a, other := open(t, url), open(t, strings.ToLower(url))
	if !isGranted(t, a, "x") || isGranted(t, open(t, url), "x") {
		t.Error("two drivers with the same name do not exclude each other")
	}
	if !isGranted(t, other, "x") {
		t.Error("the memory with another name has the lock, too")
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if isGranted(t, open(t, url), "x") {
		t.Error("the lock ended when the driver that took it was closed")
	}
}

func TestAURLWithMoreThanANameIsRefused(t *testing.T) {
	for _, url := range []string{"mem://jobs", "mem:///jobs", "mem:/jobs", "mem:jobs?ttl=5s", "mem://user:secret@host"} {
		_, err := driver.Open(t.Context(), url)
		if !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("Open(%q): %v; want ErrInvalid", url, err)
		}
	}
}

func TestNewMakesANewMemory(t *testing.T) {
	for _, d := range []driver.Driver{memlock.New(nil), memlock.New(nil), open(t, "mem:"), open(t, "mem:")} {
		if !isGranted(t, d, "x") {
			t.Error("two drivers without a name share a memory")
		}
	}
	m := memlock.NewMemory(nil)
	if !isGranted(t, m.Driver(), "x") || isGranted(t, m.Driver(), "x") {
		t.Error("two drivers of one memory do not exclude each other")
	}
}
