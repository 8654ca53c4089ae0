package sqlitelock

import (
	"net"
	"syscall"
)

// A doorbell tells another process of this host that there is a signal for it, so that it
// need not look all the time: an empty datagram to an abstract socket, which has no file
// that could be left behind. It goes astray between containers that share the folder but
// not the network; then looking has to do.
//
// Anybody on the host may ring. All that it does is to make us look.
type doorbell struct{ conn *net.UnixConn }

func doorbellName(inbox string) string { return "@pawl-" + inbox }

// newDoorbell hangs up the bell of an inbox, or is nil where that cannot be done.
func newDoorbell(inbox string) *doorbell {
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: doorbellName(inbox), Net: "unixgram"})
	if err != nil {
		return nil
	}
	return &doorbell{conn: conn}
}

// ring rings the bell of another inbox, if there is one, and never waits: a bell that
// cannot take more is ringing already.
func (b *doorbell) ring(inbox string) {
	if b == nil {
		return
	}
	raw, err := b.conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Write(func(fd uintptr) bool {
		_ = syscall.Sendto(int(fd), nil, syscall.MSG_DONTWAIT, &syscall.SockaddrUnix{Name: doorbellName(inbox)})
		return true
	})
}

// reaches reports whether another inbox is within earshot, and so are we for it: there is
// a socket of that name. It rings no bell.
func (b *doorbell) reaches(inbox string) (found bool) {
	if b == nil {
		return false
	}
	raw, err := b.conn.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Control(func(uintptr) { // which fails when our own bell is closed
		fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			return
		}
		found = syscall.Connect(fd, &syscall.SockaddrUnix{Name: doorbellName(inbox)}) == nil
		_ = syscall.Close(fd)
	})
	return found && err == nil
}

// listen calls f for each ring, until close.
func (b *doorbell) listen(f func()) {
	if b == nil {
		return
	}
	var nothing [1]byte
	for {
		if _, _, err := b.conn.ReadFromUnix(nothing[:]); err != nil {
			return
		}
		f()
	}
}

func (b *doorbell) close() {
	if b != nil {
		_ = b.conn.Close()
	}
}
