package memlock_test

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/memlock"
)

// Drivers of one name share a memory, which outlives them.
func TestURLsOfOneNameShareAMemory(t *testing.T) {
	url := "mem:Jobs" + rand.Text() // named memories stay, also for a second run in this process
	a, other := open(t, url), open(t, strings.ToLower(url))
	if !takes(t, a, "x") || takes(t, open(t, url), "x") {
		t.Error("two drivers of one name do not exclude each other")
	}
	if !takes(t, other, "x") {
		t.Error("a memory of another name has the lock, too")
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if takes(t, open(t, url), "x") {
		t.Error("the lock is gone with the driver that took it")
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

func TestNewIsAMemoryOfItsOwn(t *testing.T) {
	for _, d := range []driver.Driver{memlock.New(nil), memlock.New(nil), open(t, "mem:"), open(t, "mem:")} {
		if !takes(t, d, "x") {
			t.Error("two memories without a name are one")
		}
	}
	m := memlock.NewMemory(nil)
	if !takes(t, m.Driver(), "x") || takes(t, m.Driver(), "x") {
		t.Error("two drivers of one memory do not exclude each other")
	}
}
