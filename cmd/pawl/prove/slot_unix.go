//go:build unix

package prove

import (
	"cmp"
	"slices"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/cmd/pawl/prove/proxy"
	"github.com/pawl-go/pawl/cmd/pawl/prove/worker"
)

// live starts one process after the other, until the run drains.
func (s *slot) live() {
	for life := 1; ; life++ {
		s.controller.mu.Lock()
		draining := s.draining
		s.lives++
		first := s.lives * idsOfALife
		s.controller.mu.Unlock()
		if draining {
			return
		}
		line := history.Worker{Worker: s.worker, Life: life, From: s.now()}
		p, err := startProcess(s.Worker, worker.Config{
			URL: s.url(), Namespace: s.Namespace, Worker: s.worker, Life: life, Epoch: s.epoch, FirstID: first,
			Seed: s.Seed, TTL: s.TTL, Rate: s.Rate / float64(s.Workers), Clients: s.Clients, Actors: s.Actors,
			Names: s.Names, Planted: s.Planted, Heeds: s.Heeds, Section: s.Section,
		}, s.Stderr)
		if err != nil {
			line.To, line.End = s.now(), err.Error()
			s.write(history.Line{Worker: &line})
			return
		}
		line.PID = p.cmd.Process.Pid
		line.End = s.follow(p)
		line.To = s.now()
		s.write(history.Line{Worker: &line})
		if line.End == "done" {
			return
		}
	}
}

func (s *slot) url() string {
	if s.proxy == nil {
		return s.URL
	}
	return proxy.Replace(s.URL, s.proxy.Addresses())
}

// follow reads what a process says until it ends, and returns how it ended.
func (s *slot) follow(p *process) (end string) {
	s.mu.Lock()
	s.process, s.ready, s.open = p, false, map[int64]*history.Claim{}
	s.mu.Unlock()
	s.controller.mu.Lock()
	draining := s.draining
	s.controller.mu.Unlock()
	if draining {
		p.order(worker.Order{Do: "drain"})
	}
	p.messages(func(m worker.Message) {
		switch {
		case m.Ready:
			s.mu.Lock()
			s.ready = true
			s.mu.Unlock()
		case m.Open != nil:
			s.note(m.Open)
		case m.Pause != nil:
			s.write(history.Line{Fault: m.Pause})
		case m.Left != nil:
			m.Left.At = s.now()
			s.write(history.Line{Left: m.Left})
		case m.Over != nil:
			s.over(m.Over)
		case m.Still != nil:
			s.still(m.Still)
		case m.Ask != nil:
			p.order(worker.Order{Answer: s.ask(m.Ask)})
		case m.Fault != "":
			select {
			case s.ack <- m.Fault:
			default: // no fault waits for it any more
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
	pending := s.open
	s.open = nil
	s.mu.Unlock()
	s.died(pending)
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

func (s *slot) note(c *history.Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[c.ID] = c
}

func (s *slot) still(t *worker.Still) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.open[t.Claim]; c != nil {
		c.Believed = t.At
	}
}

func (s *slot) over(c *history.Claim) {
	s.mu.Lock()
	delete(s.open, c.ID)
	s.mu.Unlock()
	s.controller.mu.Lock()
	defer s.controller.mu.Unlock()
	if c.Got > 0 {
		s.leases++
	}
	s.writeLocked(history.Line{Claim: c})
}

// died writes down the claims of a process that has ended.
func (s *slot) died(pending map[int64]*history.Claim) {
	at := s.now()
	claims := make([]*history.Claim, 0, len(pending))
	for _, c := range pending {
		claims = append(claims, c)
	}
	slices.SortFunc(claims, func(a, b *history.Claim) int { return cmp.Compare(a.ID, b.ID) })
	for _, c := range claims {
		if c.Died = at; c.Got == 0 {
			c.Answer = history.Unknown
		}
		s.over(c)
	}
}

func (s *slot) ask(q *worker.Ask) *worker.Answer {
	s.controller.mu.Lock()
	defer s.controller.mu.Unlock()
	r := s.registers[q.Name]
	if r == nil {
		return &worker.Answer{Claim: q.Claim, Stale: true}
	}
	a, w := r.serve(q, s.CheckFences)
	if w != nil {
		w.At = s.now()
		s.writeLocked(history.Line{Write: w})
	}
	return &a
}

// current is the process, if it is at work.
func (s *slot) current() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ready {
		return nil
	}
	return s.process
}

func (s *slot) drain() {
	s.mu.Lock()
	p := s.process
	s.mu.Unlock()
	if p != nil {
		p.order(worker.Order{Do: "drain"})
	}
}

// end kills the process.
func (s *slot) end() {
	s.mu.Lock()
	p := s.process
	s.mu.Unlock()
	if p != nil {
		p.kill()
	}
}
