package memlock_test

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/memlock"
)

func TestURLsOfOneNameShareAMemory(t *testing.T) {
	url := "mem:Jobs" + rand.Text() // named memories stay, also for a second run in this process
	a, b, other := open(t, url), open(t, url), open(t, strings.ToLower(url))
	if !takes(t, a, "x") || takes(t, b, "x") {
		t.Error("two drivers of one name do not exclude each other")
	}
	if !takes(t, other, "x") {
		t.Error("a memory of another name has the lock, too")
	}
}

func TestANamedMemoryOutlivesItsDrivers(t *testing.T) {
	url := "mem:" + rand.Text()
	a := open(t, url)
	if !takes(t, a, "x") {
		t.Fatal("not granted")
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if takes(t, open(t, url), "x") {
		t.Error("the lock is gone with the driver that took it")
	}
}

func TestAURLWithoutANameIsAMemoryOfItsOwn(t *testing.T) {
	for range 2 {
		if !takes(t, open(t, "mem:"), "x") {
			t.Error("two memories without a name are one")
		}
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
	for range 2 {
		if !takes(t, memlock.New(nil), "x") {
			t.Error("two of New are one memory")
		}
	}
	m := memlock.NewMemory(nil)
	if !takes(t, m.Driver(), "x") || takes(t, m.Driver(), "x") {
		t.Error("two drivers of one memory do not exclude each other")
	}
}
