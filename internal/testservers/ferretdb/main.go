// Command ferretdb is the server for the tests of mongolock: FerretDB, which speaks
// MongoDB's protocol, on SQLite, behind a proxy that forwards one message at a time.
// Otherwise its updates would not be atomic, because it reads, compares and writes in
// separate steps (https://github.com/FerretDB/FerretDB/issues/3040).
//
//	ferretdb -data FOLDER -listen 127.0.0.1:27017 [-count 127.0.0.1:8080]
//
// At -count it serves the number of the clients' messages over HTTP. It prints nothing.
// It ends when its standard input ends, so that it does not outlive the test that started
// it.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"sync/atomic"

	"github.com/FerretDB/FerretDB/ferretdb"
)

func main() {
	data := flag.String("data", "", "the existing `FOLDER` of the databases")
	listen := flag.String("listen", "127.0.0.1:0", "the `ADDRESS` at which the proxy listens")
	count := flag.String("count", "", "the `ADDRESS` of the HTTP server with the number of messages; empty for none")
	flag.Parse()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	if *count != "" {
		go func() {
			_ = http.ListenAndServe(*count, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = fmt.Fprintln(w, messages.Load())
			}))
		}()
	}
	if err := run(*data, *listen); err != nil {
		fmt.Fprintln(os.Stderr, "ferretdb:", err)
		os.Exit(1)
	}
}

var messages atomic.Int64 // the number of the clients' messages

func run(data, listen string) error {
	f, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: "127.0.0.1:0"},
		Logger:    slog.New(slog.DiscardHandler),
		Handler:   "sqlite",
		SQLiteURL: "file:" + data + "/?_pragma=synchronous(off)",
	})
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- f.Run(context.Background()) }()
	at, err := url.Parse(f.MongoDBURI())
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	go func() { failed <- serve(l, at.Host) }()
	return <-failed
}

// serve forwards the messages of each incoming connection.
func serve(l net.Listener, serverAddr string) error {
	var requestMu sync.Mutex // held from a request until its reply
	for {
		client, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer client.Close()
			server, err := net.Dial("tcp", serverAddr)
			if err != nil {
				return
			}
			defer server.Close()
			_ = forward(client, server, &requestMu)
		}()
	}
}

// forward forwards the requests of one connection, and their replies. A request that it
// has read completely runs to its end, even if the client disconnects.
func forward(client, server net.Conn, requestMu *sync.Mutex) error {
	for {
		request, err := readMessage(client)
		if err != nil {
			return err
		}
		messages.Add(1)
		reply, err := exchange(server, request, requestMu)
		if err != nil {
			return err
		}
		if _, err := client.Write(reply); err != nil {
			return err
		}
	}
}

func exchange(server net.Conn, request []byte, requestMu *sync.Mutex) (reply []byte, err error) {
	requestMu.Lock()
	defer requestMu.Unlock()
	if request, err = narrowFilters(server, request); err != nil {
		return nil, err
	}
	if _, err := server.Write(request); err != nil || hasNoReply(request) {
		return nil, err
	}
	if reply, err = readMessage(server); err == nil {
		limitBatch(reply)
	}
	return reply, err
}

// limitBatch makes clients send at most 50 updates in a request. FerretDB keeps a
// connection to SQLite for each update until all are done, and hangs above 100.
func limitBatch(reply []byte) {
	field := []byte("\x10maxWriteBatchSize\x00")
	if i := bytes.Index(reply, field); i >= 0 && len(reply) >= i+len(field)+4 {
		binary.LittleEndian.PutUint32(reply[i+len(field):], 50)
	}
}

const (
	headerSize     = 16 // length, id, id of the answered request, kind: 4 bytes each
	opMsg          = 2013
	moreToCome     = 2 // a flag of OP_MSG: the client expects no reply
	maxMessageSize = 48_000_000
)

// readMessage reads one message.
func readMessage(from io.Reader) ([]byte, error) {
	m := make([]byte, headerSize, 4096)
	if _, err := io.ReadFull(from, m); err != nil {
		return nil, err
	}
	n := int(binary.LittleEndian.Uint32(m))
	if n < headerSize || n > maxMessageSize {
		return nil, errors.New("a message has an impossible length")
	}
	m = append(m, make([]byte, n-headerSize)...)
	_, err := io.ReadFull(from, m[headerSize:])
	return m, err
}

// hasNoReply reports whether a request has no reply.
func hasNoReply(m []byte) bool {
	return len(m) >= headerSize+4 && binary.LittleEndian.Uint32(m[12:]) == opMsg &&
		binary.LittleEndian.Uint32(m[headerSize:])&moreToCome != 0
}
