package main

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// proxy forwards connections to the server with a longer round trip: it delays data by
// delay in each direction. It does not limit the rate: data arrives in the order and at
// the intervals in which it was sent.
type proxy struct {
	listener   net.Listener
	serverAddr string
	delay      time.Duration
	sentBytes  atomic.Int64 // bytes in both directions
}

func startProxy(serverAddr string, roundTrip time.Duration) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, serverAddr: serverAddr, delay: roundTrip / 2}
	go p.serve()
	return p, nil
}

func (p *proxy) addr() string { return p.listener.Addr().String() }
func (p *proxy) stop()        { _ = p.listener.Close() }

func (p *proxy) serve() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.serverAddr)
		if err != nil {
			_ = in.Close()
			continue
		}
		var once sync.Once
		closeBoth := func() { once.Do(func() { _ = in.Close(); _ = out.Close() }) }
		go p.pipe(in, out, closeBoth)
		go p.pipe(out, in, closeBoth)
	}
}

type delayedData struct {
	due  time.Time
	data []byte
}

func (p *proxy) pipe(from io.Reader, to io.Writer, closeBoth func()) {
	defer closeBoth()
	queue := make(chan delayedData, 1<<14)
	go func() {
		defer closeBoth()
		for x := range queue {
			time.Sleep(time.Until(x.due))
			if _, err := to.Write(x.data); err != nil {
				return
			}
		}
	}()
	defer close(queue)
	for {
		b := make([]byte, 16<<10)
		n, err := from.Read(b)
		if err != nil {
			return
		}
		p.sentBytes.Add(int64(n))
		queue <- delayedData{time.Now().Add(p.delay), b[:n]}
	}
}
