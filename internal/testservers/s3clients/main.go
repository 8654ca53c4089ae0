// Command s3clients writes to an S3-like store through the usual SDKs, for the tests of
// package fence, and for docs/fencing.md, which shows the code between the two. It is a
// module of its own, so that no other module depends on an SDK.
//
//	s3clients -url http://127.0.0.1:7070 -client aws write KEY FENCE TEXT
//	s3clients -url http://127.0.0.1:7070 -client minio read KEY
//	s3clients -url http://127.0.0.1:7070 -client minio probe KEY
//
// With -lose the reply to the first PUT of an object is lost. The client gets an error,
// and may send the PUT again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/fence"
)

func main() {
	url := flag.String("url", "", "where the store is")
	client := flag.String("client", "aws", "aws or minio")
	lose := flag.Bool("lose", false, "lose the reply to the first PUT")
	flag.Parse()
	if err := run(context.Background(), *url, *client, *lose, flag.Args()); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url, client string, lose bool, args []string) error {
	transport := &losing{lose: lose}
	open := map[string]func(context.Context, string, *http.Client) (fence.ObjectStore, error){"aws": throughAWS, "minio": throughMinIO}[client]
	store, err := open(ctx, url, &http.Client{Transport: transport})
	if err != nil {
		return err
	}
	transport.armed = true
	switch {
	case len(args) == 4 && args[0] == "write":
		f, err := strconv.ParseUint(args[2], 10, 64)
		if err != nil {
			return err
		}
		return fence.UpdateObject(ctx, store, args[1], f, func(old []byte) ([]byte, error) {
			return fmt.Appendf(old, "%d %s\n", f, args[3]), nil
		})
	case len(args) == 2 && args[0] == "read":
		o, err := store.Get(ctx, args[1])
		if err == nil {
			_, err = os.Stdout.Write(o.Body)
		}
		return err
	case len(args) == 2 && args[0] == "probe":
		return fence.ProbeObjectStore(ctx, store, args[1])
	}
	return errors.New("want write KEY FENCE TEXT, read KEY, or probe KEY, not: " + strings.Join(args, " "))
}

// losing is a network that loses a reply.
type losing struct{ lose, armed bool }

func (l *losing) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && l.lose && l.armed && r.Method == http.MethodPut {
		l.lose = false
		_ = answer.Body.Close()
		return nil, io.ErrUnexpectedEOF
	}
	return answer, err
}
