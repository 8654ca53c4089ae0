//go:build unix

package prove

import (
	"cmp"
	"maps"
	"slices"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/cmd/pawl/prove/proxy"
	"github.com/pawl-go/pawl/cmd/pawl/prove/worker"
)

// runProcesses runs one process after the other until the run drains.
func (s *slot) runProcesses() {
	for life := 1; ; life++ {
		if s.draining.Load() {
			return
		}
		c := s.Config
		c.Worker, c.Life, c.FirstID, c.Rate = s.worker, life, s.processes.Add(1)*idsPerProcess, s.Rate/float64(s.Workers)
		if s.proxy != nil {
			c.URL = proxy.Replace(s.URL, s.proxy.Addresses())
		}
		line := history.Worker{Worker: s.worker, Life: life, From: s.now()}
		p, err := startProcess(s.Command, c, s.Stderr)
		if err != nil {
			line.To, line.End = s.now(), err.Error()
			s.write(history.Line{Worker: &line})
			return
		}
		line.PID = p.cmd.Process.Pid
		line.End = s.readMessages(p)
		line.To = s.now()
		s.write(history.Line{Worker: &line})
		if line.End == "done" {
			return
		}
	}
}

// readMessages reads the messages of a process until it ends, and returns how it ended.
func (s *slot) readMessages(p *process) (end string) {
	s.mu.Lock()
	s.process, s.ready, s.openClaims = p, false, map[int64]*history.Claim{}
	s.mu.Unlock()
	if s.draining.Load() {
		p.order(worker.Order{Do: "drain"})
	}
	p.readMessages(func(m worker.Message) {
		switch {
		case m.Ready:
			s.mu.Lock()
			s.ready = true
			s.mu.Unlock()
		case m.Open != nil:
			s.mu.Lock()
			s.openClaims[m.Open.ID] = m.Open
			s.mu.Unlock()
		case m.Line != nil:
			s.record(*m.Line)
		case m.Still != nil:
			s.mu.Lock()
			if c := s.openClaims[m.Still.Claim]; c != nil {
				c.Believed = m.Still.At
			}
			s.mu.Unlock()
		case m.Ask != nil:
			p.order(worker.Order{Answer: s.ask(m.Ask)})
		case m.Fault != "":
			select {
			case s.ack <- m.Fault:
			default: // orderFault no longer waits for it
			}
		case m.Error != "":
			end = m.Error
		case m.Bye:
			end = "done"
		}
	})
	code := p.wait()
	s.mu.Lock()
	s.process, s.ready = nil, false
	pending := slices.SortedFunc(maps.Values(s.openClaims), func(a, b *history.Claim) int { return cmp.Compare(a.ID, b.ID) })
	s.mu.Unlock()
	at := s.now()
	for _, c := range pending {
		if c.Died = at; c.Got == 0 {
			c.Answer = history.Unknown
		}
		s.record(history.Line{Claim: c})
	}
	switch {
	case end != "":
	case p.killed.Load():
		end = "killed"
	case code == worker.Crashed:
		end = "crashed"
	default:
		end = "ended by itself"
	}
	return end
}

// record writes a line of the worker to the history.
func (s *slot) record(l history.Line) {
	c := l.Claim
	if c == nil {
		s.write(l)
		return
	}
	s.mu.Lock()
	delete(s.openClaims, c.ID)
	s.mu.Unlock()
	s.controller.mu.Lock()
	defer s.controller.mu.Unlock()
	if c.Got > 0 {
		s.leases++
	}
	s.writeLocked(l)
}

// ask sends a request to the register of a name.
func (s *slot) ask(q *worker.Ask) *worker.Answer {
	s.controller.mu.Lock()
	defer s.controller.mu.Unlock()
	a, w := s.registers[q.Name].serve(q, s.CheckFences)
	if w != nil {
		w.At = s.now()
		s.writeLocked(history.Line{Write: w})
	}
	return &a
}

// current returns the process, and whether it has opened its clients.
func (s *slot) current() (p *process, ready bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process, s.ready
}
