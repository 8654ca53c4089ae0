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

// writeLocked lets another connection, as of another process, keep the write lock until the test says.
func writeLocked(tb testing.TB, path string) (unlock func()) {
	tb.Helper()
	c, err := connect(path)
	if err == nil {
		err = c.script("BEGIN IMMEDIATE")
	}
	if err != nil {
		tb.Fatal(err)
	}
	return func() {
		if err := errors.Join(c.script("ROLLBACK"), c.close()); err != nil {
			tb.Error(err)
		}
	}
}

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

// A transaction that could not be undone would keep everybody out, us included.
func TestATransactionThatWasLeftOpenIsUndone(t *testing.T) {
	d := open(t, file(t), nil)
	w := d.table.writer.conn
	err := errors.Join(w.begin.exec(), w.upsertEntry.exec([]byte("job"), []byte("half a step")))
	if err != nil {
		t.Fatal(err)
	}
	mustAcquire(t, d, mutex("job"))
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

func TestWithoutADeadlinePatienceEnds(t *testing.T) {
	path := file(t)
	d := open(t, path, nil)
	d.table.patience = 30 * time.Millisecond
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
	d, err := Open(ctx, path, nil)
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

func TestAPanicInsideAStepLocksNobodyOut(t *testing.T) {
	path := file(t)
	d := open(t, path, nil)
	func() {
		defer func() { _ = recover() }()
		_ = d.table.writer.conn.transaction(func() error { panic("bug") })
	}()
	mustAcquire(t, open(t, path, nil), mutex("job"))
	mustAcquire(t, d, mutex("other"))
}

func TestManyMayOpenANewFileAtOnce(t *testing.T) {
	path := file(t)
	opened := make(chan *Driver)
	const n = 16
	for range n {
		go func() {
			d, err := Open(ctx, path, nil)
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

func TestTheLogStaysShortHoweverManyWrite(t *testing.T) {
	path := file(t)
	d := open(t, path, nil)
	c, err := connect(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	// A reader that stays holds the log's end where it is.
	if err := c.script("BEGIN; SELECT count(*) FROM entries"); err != nil {
		t.Fatal(err)
	}
	size := func() int64 {
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	for size() <= longLog {
		cycle(t, d, "job")
	}
	if err := c.script("COMMIT"); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); size() > longLog; cycle(t, d, "job") {
		if time.Since(began) > 5*time.Second {
			t.Fatalf("the log still has %d bytes", size())
		}
	}
}
