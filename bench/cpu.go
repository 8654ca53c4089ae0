package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// selfCPU returns the processor time that this process has used.
func selfCPU() time.Duration { return usedBy(syscall.RUSAGE_SELF) }

func usedBy(who int) time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(who, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A meter measures the processor time of this process and of a server from now on.
type meter struct {
	s            server
	mine, theirs time.Duration
}

func startMeter(s server) meter {
	theirs := s.cpu()
	return meter{s, selfCPU(), theirs}
}

// perCycle returns the mean processor time, in µs, that this process and the server have
// used for each of n cycles since the start.
func (m meter) perCycle(n int64) (client, server float64) {
	mine := selfCPU() - m.mine
	theirs := m.s.cpu() - m.theirs
	each := float64(max(n, 1))
	return float64(mine.Microseconds()) / each, float64(theirs.Microseconds()) / each
}

// A machine has the processor time that the system has counted for all processors
// together, and the time at which it was read.
type machine struct {
	at           time.Time
	busy, stolen time.Duration
	ours         time.Duration // the part of busy that this process, and the servers that have ended, used
}

// look reads the machine's counters, which stay 0 on systems without /proc/stat.
func look() machine {
	m := machine{at: time.Now(), ours: selfCPU() + usedBy(syscall.RUSAGE_CHILDREN)}
	stat, _ := os.ReadFile("/proc/stat")
	first, _, _ := strings.Cut(string(stat), "\n")
	for i, field := range strings.Fields(first) {
		ticks, _ := strconv.ParseInt(field, 10, 64)
		switch used := time.Duration(ticks) * (time.Second / 100); i {
		case 1, 2, 3, 6, 7: // user, nice, system, irq, softirq
			m.busy += used
		case 8:
			m.stolen += used
		}
	}
	return m
}

// The limits of a quiet machine: the cores that other processes use during a measurement,
// the cores that the hypervisor takes, and the load before it.
const (
	mostOthers = 0.10
	mostStolen = 0.02
	mostLoad   = 0.5
)

// unquiet returns why a measurement between two readings is unreliable, or "".
func unquiet(from, to machine) string {
	took := to.at.Sub(from.at).Seconds()
	stolen := (to.stolen - from.stolen).Seconds() / took
	others := (to.busy - from.busy - (to.ours - from.ours)).Seconds() / took
	var why []string
	if others > mostOthers {
		why = append(why, fmt.Sprintf("other processes used %.0f %% of a core", 100*others))
	}
	if stolen > mostStolen {
		why = append(why, fmt.Sprintf("the hypervisor took %.0f %% of a core", 100*stolen))
	}
	return strings.Join(why, ", ")
}

// loadAverage is the load of the last minute, or 0 where that is not known.
func loadAverage() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	v, _ := strconv.ParseFloat(first, 64)
	return v
}
