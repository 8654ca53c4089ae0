package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/redistest"
)

// BenchmarkTopFirstFrame measures the time from the start of the process `pawl top` until
// its first frame is on the terminal, and until that has names in it.
func BenchmarkTopFirstFrame(b *testing.B) {
	exe := filepath.Join(b.TempDir(), "pawl")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", exe, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	for _, names := range []int{10, 10_000} {
		for name, url := range map[string]string{
			"sqlite": fileURL(filepath.Join(b.TempDir(), "locks.db")),
			"redis":  "redis://" + redistest.Start(b).Addr,
		} {
			b.Run(fmt.Sprintf("%s/%d", name, names), func(b *testing.B) {
				holdMany(b, url, names)
				var first, full []time.Duration
				for b.Loop() {
					f, n := firstFrame(b, exe, url)
					first, full = append(first, f), append(full, n)
				}
				for what, all := range map[string][]time.Duration{"frame": first, "names": full} {
					slices.Sort(all)
					b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "ms-"+what)
					b.ReportMetric(float64(all[len(all)-1].Microseconds())/1000, "ms-"+what+"-max")
				}
			})
		}
	}
}

func holdMany(b *testing.B, url string, n int) {
	b.Helper()
	c, err := pawl.Open(b.Context(), url, &pawl.Options{TTL: time.Hour})
	noError(b, err)
	b.Cleanup(func() { _ = closeSoon(c) })
	var group sync.WaitGroup
	for part := range 16 {
		group.Go(func() {
			for i := part; i < n; i += 16 {
				if _, err := c.Mutex(fmt.Sprintf("job:%05d", i)).Lock(b.Context()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

func firstFrame(b *testing.B, exe, url string) (first, names time.Duration) {
	b.Helper()
	master, slave, err := newPTY()
	noError(b, err)
	defer master.Close()
	cmd := exec.Command(exe, "top")
	cmd.Env = append(os.Environ(), "PAWL_URL="+url, "TERM=xterm")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	began := time.Now()
	noError(b, cmd.Start())
	_ = slave.Close()
	shown, buf := newEmulator(80, 24), make([]byte, 64<<10)
	for names == 0 {
		n, err := master.Read(buf)
		if err != nil {
			b.Fatalf("%v; the screen shows\n%s", err, shown.text())
		}
		_, _ = shown.Write(buf[:n])
		text := shown.text()
		if first == 0 && strings.Contains(text, "q quit") {
			first = time.Since(began)
		}
		if strings.Contains(text, ">job:") {
			names = time.Since(began)
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return first, names
}
