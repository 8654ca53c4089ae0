package swaplock

import (
	"net"
	"net/rpc"
	"slices"
	"strings"
	"sync"
	"time"
)

// Server is an engine that can only compare and swap: it keeps a value, a version and a
// stamp for each name, and puts its time into each answer.
type Server struct {
	tick  time.Duration // its time is in whole ticks
	ahead time.Duration // its clock is ahead of the machine's by this

	mu          sync.Mutex // protects the fields below
	values      map[string]Value
	lastVersion uint64
}

// Value is the value that the server keeps of a name.
type Value struct {
	Data    []byte
	Version uint64    // new with each Put; 0 if there is no value
	Stamp   time.Time // of the Put, on the server's clock
}

// Put replaces the value that has a version.
type Put struct {
	Name    string
	Version uint64 // 0 if there must be no value
	Data    []byte
}

// Answer is the server's answer to a request.
type Answer struct {
	Now   time.Time
	Done  bool // for Put
	Value Value
	Names []string // for List
}

// Serve answers requests on l until l is closed. Its clock shows whole ticks, and is
// ahead of the machine's.
func Serve(l net.Listener, tick, ahead time.Duration) {
	s := rpc.NewServer()
	// A server that lost its data must not repeat versions.
	if err := s.Register(&Server{tick: tick, ahead: ahead, values: map[string]Value{}, lastVersion: uint64(time.Now().UnixNano())}); err != nil {
		panic(err)
	}
	s.Accept(l)
}

func (s *Server) now() time.Time { return time.Now().Add(s.ahead).Truncate(s.tick) }

// Get reads a value.
func (s *Server) Get(name string, a *Answer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	*a = Answer{Now: s.now(), Value: s.values[name]}
	return nil
}

// Put compares and swaps, in one atomic step.
func (s *Server) Put(p Put, a *Answer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if *a = (Answer{Now: now, Value: s.values[p.Name]}); a.Value.Version != p.Version {
		return nil
	}
	s.lastVersion++
	a.Done, a.Value = true, Value{p.Data, s.lastVersion, now}
	s.values[p.Name] = a.Value
	return nil
}

// List lists the names that have a value.
func (s *Server) List(prefix string, a *Answer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	*a = Answer{Now: s.now()}
	for name := range s.values {
		if strings.HasPrefix(name, prefix) {
			a.Names = append(a.Names, name)
		}
	}
	slices.Sort(a.Names)
	return nil
}
