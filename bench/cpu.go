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
func selfCPU() time.Duration { return rusageCPU(syscall.RUSAGE_SELF) }

func rusageCPU(who int) time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(who, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A cpuMeter measures the processor time of this process and of a server.
type cpuMeter struct {
	target         server
	client, server time.Duration
}

func startCPUMeter(s server) cpuMeter {
	used := s.cpu()
	return cpuMeter{s, selfCPU(), used}
}

// perCycle returns the mean processor time, in µs, that this process and the server have
// used for each of n cycles since the start.
func (m cpuMeter) perCycle(n int64) (client, server float64) {
	clientTime := selfCPU() - m.client
	serverTime := m.target.cpu() - m.server
	cycles := float64(max(n, 1))
	return float64(clientTime.Microseconds()) / cycles, float64(serverTime.Microseconds()) / cycles
}

// A cpuReading has the processor time of all processors together at one time.
type cpuReading struct {
	at           time.Time
	busy, stolen time.Duration
	own          time.Duration // the part of busy that this process and its ended servers used
}

// readCPU reads the system's counters, which stay 0 on systems without /proc/stat.
func readCPU() cpuReading {
	m := cpuReading{at: time.Now(), own: selfCPU() + rusageCPU(syscall.RUSAGE_CHILDREN)}
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

// The limits of a quiet machine: the cores that other processes use and the cores that
// the hypervisor takes during a measurement, and the load before it.
const (
	maxOtherCores  = 0.10
	maxStolenCores = 0.02
	maxLoadBefore  = 0.5
)

// unquietReason returns why a measurement between two readings is unreliable, or "".
func unquietReason(from, to cpuReading) string {
	took := to.at.Sub(from.at).Seconds()
	stolen := (to.stolen - from.stolen).Seconds() / took
	others := (to.busy - from.busy - (to.own - from.own)).Seconds() / took
	var reasons []string
	if others > maxOtherCores {
		reasons = append(reasons, fmt.Sprintf("other processes used %.0f %% of a core", 100*others))
	}
	if stolen > maxStolenCores {
		reasons = append(reasons, fmt.Sprintf("the hypervisor took %.0f %% of a core", 100*stolen))
	}
	return strings.Join(reasons, ", ")
}

// loadAverage returns the load of the last minute, or 0 if it is unknown.
func loadAverage() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	v, _ := strconv.ParseFloat(first, 64)
	return v
}
