package timeshift

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/pawl-go/pawl/internal/servertest"
)

// A GoClock sets the wall clock of a server that is a Go program. A Go program gets the
// time not from a library but from code that the kernel maps into its memory (the vDSO).
// GoClock replaces this code.
type GoClock struct {
	tb     servertest.TB
	offset time.Duration

	memory        string // the file of the process's memory
	offsetAddress int64  // the address of the clock's offset
}

// NewGo makes a clock that is ahead by this duration. Start may start several processes
// with it, one after the other.
func NewGo(tb servertest.TB, by time.Duration) *GoClock { return &GoClock{tb: tb, offset: by} }

// clockCode is int clock_gettime(clockid_t, struct timespec *). It makes the system call.
// For CLOCK_REALTIME it adds the number behind the code to the seconds.
var clockCode = []byte{
	0xb8, 228, 0, 0, 0, // mov eax, SYS_clock_gettime
	0x0f, 0x05, // syscall
	0x85, 0xff, // test edi, edi
	0x75, 12, // jne to the end
	0x48, 0x8b, 0x05, 6, 0, 0, 0, // mov rax, [the number]
	0x48, 0x01, 0x06, // add [rsi], rax
	0x31, 0xc0, // xor eax, eax
	0xc3, // ret
}

// Start starts the process with the last setting of the clock. It stops the process at
// its first instruction while it replaces the code.
func (c *GoClock) Start(cmd *exec.Cmd) error {
	runtime.LockOSThread() // only the thread that started the process may trace it
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	pid := cmd.Process.Pid
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
		return err
	}
	if err := c.replaceClock(pid); err != nil {
		_ = cmd.Process.Kill()
		return err
	}
	c.Set(c.offset)
	return syscall.PtraceDetach(pid)
}

// replaceClock replaces the code in the vDSO of a process.
func (c *GoClock) replaceClock(pid int) error {
	c.memory = fmt.Sprintf("/proc/%d/mem", pid)
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return err
	}
	var begin, end int64
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, "[vdso]") {
			_, err = fmt.Sscanf(line, "%x-%x", &begin, &end)
		}
	}
	if err != nil || begin == 0 {
		return fmt.Errorf("no vDSO in\n%s", maps)
	}
	m, err := os.OpenFile(c.memory, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer m.Close()
	image := make([]byte, end-begin)
	if _, err := m.ReadAt(image, begin); err != nil {
		return err
	}
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return err
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return err
	}
	for _, s := range symbols {
		if s.Name == "__vdso_clock_gettime" && s.Size >= uint64(len(clockCode)+8) {
			at := begin + int64(s.Value)
			c.offsetAddress = at + int64(len(clockCode))
			_, err := m.WriteAt(clockCode, at)
			return err
		}
	}
	return fmt.Errorf("the vDSO has no __vdso_clock_gettime that is long enough")
}

// Set sets the clock ahead by this duration in whole seconds, or back if it is negative.
func (c *GoClock) Set(by time.Duration) {
	c.tb.Helper()
	c.offset = by
	m, err := os.OpenFile(c.memory, os.O_RDWR, 0)
	if err == nil {
		_, err = m.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(by/time.Second)), c.offsetAddress)
		_ = m.Close()
	}
	if err != nil {
		c.tb.Fatalf("%v", err)
	}
}
