package screen

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A read that begins before Stop takes no key that is pressed after the next Start.
func TestStopEndsTheRead(t *testing.T) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	noError(t, err)
	defer master.Close()
	fd := int(master.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	noError(t, err)
	noError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	tty := &tty{path: fmt.Sprintf("/dev/pts/%d", n)}
	key := make([]byte, 8)
	stop := func() {
		t.Helper()
		if err := tty.Drain(); err != nil {
			t.Error(err)
		}
		if err := tty.Stop(); err != nil {
			t.Error(err)
		}
	}
	noError(t, tty.Start())
	ended := make(chan error)
	go func() {
		_, err := tty.Read(make([]byte, 8))
		ended <- err
	}()
	stop()
	if err := <-ended; err == nil {
		t.Error("a read that Stop ended returned no error")
	}
	noError(t, tty.Start())
	defer stop()
	if _, err := master.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	if n, err := tty.Read(key); string(key[:n]) != "x" || err != nil {
		t.Errorf("read %q, %v; want x", key[:n], err)
	}
}
