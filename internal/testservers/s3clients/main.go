// Command s3clients writes to an S3-like store through the usual SDKs, for the tests of
// package fence. docs/fencing.md links to its adapters of the SDKs. It has its own
// module, so that no other module depends on an SDK.
//
//	s3clients -url http://127.0.0.1:7070 -client aws write KEY FENCE TEXT
//	s3clients -url http://127.0.0.1:7070 -client minio read KEY
//	s3clients -url http://127.0.0.1:7070 -client minio probe KEY
//
// With -lose it drops the reply to the first PUT of an object. The client gets an error,
// and may repeat the PUT.
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
	url := flag.String("url", "", "the `URL` of the store")
	client := flag.String("client", "aws", "aws or minio")
	lose := flag.Bool("lose", false, "drop the reply to the first PUT")
	flag.Parse()
	if err := run(context.Background(), *url, *client, *lose, flag.Args()); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url, client string, lose bool, args []string) error {
	transport := &lossyTransport{lose: lose}
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
	return errors.New("the arguments must be write KEY FENCE TEXT, read KEY, or probe KEY, not: " + strings.Join(args, " "))
}

// lossyTransport drops the reply to the first PUT after armed is set, if lose is set.
type lossyTransport struct{ lose, armed bool }

func (l *lossyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && l.lose && l.armed && r.Method == http.MethodPut {
		l.lose = false
		_ = answer.Body.Close()
		return nil, io.ErrUnexpectedEOF
	}
	return answer, err
}
