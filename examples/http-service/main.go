// Http-service is a service that refuses writes with stale fences, and two clients of it:
// one that holds the lock, and one that was paused and has lost it.
//
//	go run ./examples/http-service
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"syscall"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/fence"
	_ "github.com/pawl-go/pawl/memlock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	writes := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "written") })
	service := httptest.NewServer(fence.Handler(new(fence.Memory), nil, writes))
	defer service.Close()

	locks, err := pawl.Open(ctx, "mem:", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	paused, err := locks.Mutex("account").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	current, err := locks.Mutex("account").ForceLock(ctx) // as if the first had been paused past its TTL
	if err != nil {
		log.Fatal(err)
	}
	account := func(*http.Request) string { return "account" }
	client := &http.Client{Transport: &fence.Transport{Resource: account}} // sends the fence of the lock "account"
	fmt.Println("the holder:     ", post(client, service.URL, current))
	fmt.Println("the paused one: ", post(client, service.URL, paused))
}

func post(client *http.Client, url string, lease *pawl.Lease) string {
	// The lease's context ends when the lease is lost. The fence protects against holders
	// that ignore that.
	r, err := http.NewRequestWithContext(context.WithoutCancel(lease.Context()), http.MethodPost, url, nil)
	if err != nil {
		log.Fatal(err)
	}
	answer, err := client.Do(r)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return answer.Status + " " + string(body)
}
