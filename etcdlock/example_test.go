package etcdlock_test

import (
	"context"
	"log"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/etcdlock"
)

// By URL.
func ExampleOpen() {
	ctx := context.Background()
	d, err := etcdlock.Open(ctx, "etcds://app:secret@n1.internal,n2.internal,n3.internal/locks?ca_cert=ca.pem")
	if err != nil {
		log.Fatal(err) // has a hint, and never the password
	}
	locks, err := pawl.New(d, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}

// With a client of your own.
func ExampleNew() {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"localhost:2379"}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	d, err := etcdlock.New(client, &etcdlock.Options{Prefix: "billing/locks"})
	if err != nil {
		log.Fatal(err)
	}
	locks, err := pawl.New(d, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}
