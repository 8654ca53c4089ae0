package main

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// proxy is a connection to the server with a longer round trip: it adds half of delay
// each way. It does not throttle. Data arrives in the order and at the intervals in which
// it was sent.
type proxy struct {
	l     net.Listener
	to    string
	delay time.Duration
	sent  atomic.Int64 // bytes, both ways
}

func startProxy(to string, roundTrip time.Duration) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{l: l, to: to, delay: roundTrip / 2}
	go p.serve()
	return p, nil
}

func (p *proxy) addr() string { return p.l.Addr().String() }
func (p *proxy) stop()        { _ = p.l.Close() }

func (p *proxy) serve() {
	for {
		in, err := p.l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = in.Close()
			continue
		}
		var once sync.Once
		end := func() { once.Do(func() { _ = in.Close(); _ = out.Close() }) }
		go p.pipe(in, out, end)
		go p.pipe(out, in, end)
	}
}

type parcel struct {
	due  time.Time
	data []byte
}

func (p *proxy) pipe(from io.Reader, to io.Writer, end func()) {
	defer end()
	road := make(chan parcel, 1<<14)
	go func() {
		defer end()
		for x := range road {
			time.Sleep(time.Until(x.due))
			if _, err := to.Write(x.data); err != nil {
				return
			}
		}
	}()
	defer close(road)
	for {
		b := make([]byte, 16<<10)
		n, err := from.Read(b)
		if err != nil {
			return
		}
		p.sent.Add(int64(n))
		road <- parcel{time.Now().Add(p.delay), b[:n]}
	}
}
