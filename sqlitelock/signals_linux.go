package sqlitelock

import (
	"net"
	"syscall"
)

// A wakeSocket is a datagram socket that receives a wake-up when there is a signal for
// its process, so that the process need not poll often. The datagram is empty, and the
// socket abstract, so that no file is left behind. No datagram arrives between containers
// that share the folder but not the network; processes there poll.
//
// Any process on the host may send to the socket, because a datagram only makes the
// driver poll.
type wakeSocket struct{ conn *net.UnixConn }

func wakeSocketName(inbox string) string { return "@pawl-" + inbox }

// newWakeSocket opens the socket of an inbox, or returns nil if that is not possible.
func newWakeSocket(inbox string) *wakeSocket {
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: wakeSocketName(inbox), Net: "unixgram"})
	if err != nil {
		return nil
	}
	return &wakeSocket{conn: conn}
}

// wake sends a datagram to another inbox, if that has a socket. It never waits: if the
// socket's buffer is full, its driver is about to poll.
func (s *wakeSocket) wake(inbox string) {
	if s == nil {
		return
	}
	raw, err := s.conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Write(func(fd uintptr) bool {
		_ = syscall.Sendto(int(fd), nil, syscall.MSG_DONTWAIT, &syscall.SockaddrUnix{Name: wakeSocketName(inbox)})
		return true
	})
}

// reaches reports whether another inbox has a socket on this host, so that both drivers
// can wake each other. It sends nothing.
func (s *wakeSocket) reaches(inbox string) (found bool) {
	if s == nil {
		return false
	}
	raw, err := s.conn.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Control(func(uintptr) { // Control fails when s is closed
		fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			return
		}
		found = syscall.Connect(fd, &syscall.SockaddrUnix{Name: wakeSocketName(inbox)}) == nil
		_ = syscall.Close(fd)
	})
	return found && err == nil
}

// listen calls f for each datagram, until close.
func (s *wakeSocket) listen(f func()) {
	if s == nil {
		return
	}
	var buffer [1]byte
	for {
		if _, _, err := s.conn.ReadFromUnix(buffer[:]); err != nil {
			return
		}
		f()
	}
}

func (s *wakeSocket) close() {
	if s != nil {
		_ = s.conn.Close()
	}
}
