package sqlitelock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/servertest"
)

// acquireInBackground claims the name job in n goroutines, and returns their errors.
func acquireInBackground(ctx context.Context, d *lockDriver, n int) <-chan error {
	ended := make(chan error, n)
	for range n {
		go func() {
			_, err := d.Acquire(ctx, mutex("job"))
			ended <- err
		}()
	}
	return ended
}

func TestAcquireWaitsForABusyFile(t *testing.T) {
	path := newPath(t)
	d := open(t, path, nil)
	unlock := writeLocked(t, path)
	granted := acquireInBackground(patientCtx(t), d, 1)
	select {
	case err := <-granted:
		t.Fatalf("with the file locked: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	if _, err := d.Inspect(ctx, "job"); err != nil {
		t.Fatalf("reading needs no write lock: %v", err)
	}
	unlock()
	noError(t, <-granted)
}

func TestCancellingEndsTheWaitForABusyFile(t *testing.T) {
	path := newPath(t)
	d := open(t, path, nil)
	defer writeLocked(t, path)()
	cancelable, cancel := context.WithCancel(patientCtx(t))
	ended := acquireInBackground(cancelable, d, 3) // one tries, the others queue behind it
	time.Sleep(10 * time.Millisecond)
	cancel()
	for range 3 { // long before the deadline of patientCtx
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

func TestADeadlineErrorNamesTheWriteLock(t *testing.T) {
	path := newPath(t)
	d := open(t, path, nil)
	defer writeLocked(t, path)()
	var err error
	for timeout := 20 * time.Millisecond; timeout < hangTime; timeout *= 4 { // a slow machine may not try within 20 ms
		short, cancel := context.WithTimeout(ctx, timeout)
		_, err = d.Acquire(short, mutex("job"))
		cancel()
		if errors.Is(err, driver.ErrUnavailable) {
			break
		}
	}
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, driver.ErrUnavailable) || !strings.Contains(err.Error(), "sqlite3 shell") {
		t.Fatal(err)
	}
	t.Log(err)
}

// A whileOthersWrite is a ctx without a deadline. The driver calls Err after each pause,
// and write then writes like another process.
type whileOthersWrite struct {
	context.Context

	write func()
}

func (c whileOthersWrite) Err() error {
	c.write()
	return nil
}

// A request keeps trying while other processes write, however short busyTimeout is.
func TestARequestDoesNotTimeOutWhileOthersWrite(t *testing.T) {
	path := newPath(t)
	d := open(t, path, nil)
	d.table.busyTimeout = 0
	unlock := writeLocked(t, path)
	began, pauses := time.Now(), 0
	others := whileOthersWrite{ctx, func() {
		if pauses++; pauses == 60 {
			unlock()
		}
		if err := os.Chtimes(path+"-wal", time.Time{}, began.Add(time.Duration(pauses)*time.Second)); err != nil {
			t.Error(err)
		}
	}}
	begin := func() error { return d.table.writer.conn.exec(beginImmediate) }
	if err := d.table.retry(others, begin); err != nil || pauses != 60 {
		t.Fatalf("after %d pauses: %v", pauses, err)
	}
	gets(t, d, mutex("job"))
}

func TestARequestWithoutDeadlineTimesOut(t *testing.T) {
	path := newPath(t)
	d := open(t, path, nil)
	d.table.busyTimeout = 30 * time.Millisecond
	defer writeLocked(t, path)()
	ended := acquireInBackground(ctx, d, 3)
	for range 3 {
		var e *driver.Error
		if err := <-ended; !errors.As(err, &e) || e.Permanent || e.Hint != busyHint || e.Op != "acquire" {
			t.Error(err)
		}
	}
}

func TestCloseEndsTheWaitForABusyFile(t *testing.T) {
	path := newPath(t)
	d := open(t, path, nil)
	defer writeLocked(t, path)()
	ended := acquireInBackground(patientCtx(t), d, 1)
	time.Sleep(10 * time.Millisecond)
	noError(t, d.Close())
	_, diagnosed := d.Diagnose(ctx)
	for _, err := range []error{<-ended, diagnosed} {
		if !errors.Is(err, driver.ErrClosed) {
			t.Error(err)
		}
	}
}

func TestManyMayOpenANewFileAtOnce(t *testing.T) {
	servertest.OpensTwenty(t, "sqlite:"+filepath.ToSlash(newPath(t)))
}

// On a busy machine each try to open a file takes long, and fails if another one overlaps
// it. Without pauses as long as the tries, no process would ever open the file.
func TestProcessesWhoseTriesAreSlowOpenAFile(t *testing.T) {
	path := newPath(t)
	d := open(t, path, nil)
	unlock := writeLocked(t, path)
	busy := d.table.writer.conn.exec(beginImmediate)
	unlock()
	bubble.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		var running, begun atomic.Int64
		for range 8 {
			all.Go(func() {
				process := &table{path: "missing", busyTimeout: busyTimeout}
				process.life, process.end = context.WithCancel(t.Context())
				defer process.end()
				err := process.retrySlowly(t.Context(), func() error {
					others, number := running.Add(1)-1, begun.Add(1)
					defer running.Add(-1)
					time.Sleep(20 * time.Millisecond)
					if others > 0 || begun.Load() > number {
						return busy
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}
