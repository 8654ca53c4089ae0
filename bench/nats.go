package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	_ "github.com/pawl-go/pawl/natslock"
)

// startNATS starts one node with JetStream.
func startNATS() (server, error) {
	bin, err := buildServer("nats")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pawl-bench")
	if err != nil {
		return nil, err
	}
	addr, port, err := freeAddr()
	if err != nil {
		return nil, err
	}
	p := &serverProcess{addr: addr, dir: dir}
	monitor, monitorPort, err := freeAddr()
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(bin, "-a", "127.0.0.1", "-p", port, "-m", monitorPort, "-js", "-sd", filepath.Join(dir, "data"))
	p.count = func() int64 { return receivedMessages(monitor) }
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	err = waitReady(func() error {
		c, err := nats.Connect("nats://" + addr)
		if err != nil {
			return err
		}
		defer c.Close()
		js, err := jetstream.New(c)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err = js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "raw"})
		return err
	})
	if err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

// receivedMessages returns the server's own count of the messages that clients have sent.
func receivedMessages(monitor string) int64 {
	r, err := http.Get("http://" + monitor + "/varz")
	if err != nil {
		return 0
	}
	defer r.Body.Close()
	var answer struct {
		InMsgs int64 `json:"in_msgs"`
	}
	_ = json.NewDecoder(r.Body).Decode(&answer)
	return answer.InMsgs
}

// purgeKey returns a remover that deletes the key of a lock.
func purgeKey(bucket string) remover {
	return func(s server, _, _ client, name string) error {
		c, err := nats.Connect("nats://" + s.address())
		if err != nil {
			return err
		}
		defer c.Close()
		js, err := jetstream.New(c)
		if err != nil {
			return err
		}
		kv, err := js.KeyValue(context.Background(), bucket)
		if err != nil {
			return err
		}
		return kv.Purge(context.Background(), name)
	}
}

func natsURL(addr string) string { return "nats://" + addr }

func natsContenders() []contender {
	return []contender{
		{name: "create and delete", open: openNATSKey, deleteLock: purgeKey("raw")},
		{
			name: "pawl", open: openURL(natsURL), renews: true, notifies: true,
			deleteLock: purgeKey("pawl"),
		},
	}
}

// natsKey is the floor: a client creates a key to lock, and deletes it to unlock. The key
// never expires. A client without the lock retries after a pause that grows from 1 ms to
// 10 ms.
type natsKey struct {
	conn *nats.Conn
	kv   jetstream.KeyValue
}

func openNATSKey(addr string, _ time.Duration) (client, error) {
	c, err := nats.Connect("nats://" + addr)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(c)
	if err != nil {
		return nil, err
	}
	kv, err := js.KeyValue(context.Background(), "raw")
	return &natsKey{c, kv}, err
}

func (n *natsKey) lock(ctx context.Context, name string) (func() error, func() <-chan struct{}, error) {
	for pause := time.Millisecond; ; pause = min(2*pause, 10*time.Millisecond) {
		_, err := n.kv.Create(ctx, name, []byte("x"))
		if err == nil {
			return func() error { return n.kv.Delete(context.Background(), name) }, nil, nil
		}
		if !errors.Is(err, jetstream.ErrKeyExists) {
			return nil, nil, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

func (n *natsKey) close() { n.conn.Close() }
