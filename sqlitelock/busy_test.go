package sqlitelock

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

func TestABusyFileIsWaitedFor(t *testing.T) {
	path := file(t)
	d := open(t, path, nil)
	unlock := writeLocked(t, path)
	granted := make(chan error)
	go func() {
		_, err := d.Acquire(ctx, mutex("job"))
		granted <- err
	}()
	select {
	case err := <-granted:
		t.Fatalf("with the file locked: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	if _, err := d.Inspect(ctx, "job"); err != nil {
		t.Fatalf("reading needs no write lock: %v", err)
	}
	unlock()
	if err := <-granted; err != nil {
		t.Fatal(err)
	}
}

func TestCancellingEndsTheWaitForABusyFile(t *testing.T) {
	path := file(t)
	d := open(t, path, nil)
	defer writeLocked(t, path)()
	some, cancel := context.WithCancel(ctx)
	ended := make(chan error)
	for range 3 { // one tries, the others queue behind it
		go func() {
			_, err := d.Acquire(some, mutex("job"))
			ended <- err
		}()
	}
	time.Sleep(10 * time.Millisecond)
	cancel()
	began := time.Now()
	for range 3 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestTheEndOfADeadlineSaysWhoMayBeInTheWay(t *testing.T) {
	path := file(t)
	d := open(t, path, nil)
	defer writeLocked(t, path)()
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	_, err := d.Acquire(short, mutex("job"))
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, driver.ErrUnavailable) || !strings.Contains(err.Error(), "sqlite3 shell") {
		t.Fatal(err)
	}
	t.Log(err)
}

// A crowd of processes is no reason to give up.
func TestPatienceDoesNotEndWhileOthersWrite(t *testing.T) {
	path := file(t)
	d := open(t, path, nil)
	d.table.busyTimeout = time.Second
	unlock := writeLocked(t, path)
	granted := make(chan error)
	go func() {
		_, err := d.Acquire(ctx, mutex("job"))
		granted <- err
	}()
	for range 440 {
		select {
		case err := <-granted:
			t.Fatalf("while others write: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
		if err := os.Chtimes(path+"-wal", time.Time{}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	unlock()
	if err := <-granted; err != nil {
		t.Fatal(err)
	}
}

func TestWithoutADeadlinePatienceEnds(t *testing.T) {
	path := file(t)
	d := open(t, path, nil)
	d.table.busyTimeout = 30 * time.Millisecond
	defer writeLocked(t, path)()
	ended := make(chan error)
	for range 3 {
		go func() {
			_, err := d.Acquire(ctx, mutex("job"))
			ended <- err
		}()
	}
	for range 3 {
		var e *driver.Error
		if err := <-ended; !errors.As(err, &e) || e.Permanent || e.Hint != busyHint || e.Op != "acquire" {
			t.Error(err)
		}
	}
}

func TestCloseEndsTheWaitForABusyFile(t *testing.T) {
	path := file(t)
	d, err := OpenFile(ctx, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer writeLocked(t, path)()
	ended := make(chan error)
	go func() {
		_, err := d.Acquire(ctx, mutex("job"))
		ended <- err
	}()
	time.Sleep(10 * time.Millisecond)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, driver.ErrClosed) {
		t.Fatal(err)
	}
}

func TestManyMayOpenANewFileAtOnce(t *testing.T) {
	path := file(t)
	opened := make(chan *Driver)
	const n = 16
	for range n {
		go func() {
			d, err := OpenFile(ctx, path, nil)
			if err != nil {
				t.Error(err)
			}
			opened <- d
		}()
	}
	var granted int
	for range n {
		d := <-opened
		if d == nil {
			continue
		}
		if _, err := d.Acquire(ctx, mutex("job")); err == nil {
			granted++
		}
		defer d.Close()
	}
	if granted != 1 {
		t.Fatalf("%d were granted", granted)
	}
}
