// Command s3 is the server that the tests of package fence write objects to: versitygw,
// which speaks S3's protocol, on a folder. It is a module of its own, so that no other
// module depends on the server.
//
//	s3 -data FOLDER -listen 127.0.0.1:7070
//
// The file system of the folder needs extended attributes: the metadata of objects are
// there. The user is "pawl", and so is the password. The server prints nothing, except
// why it could not start. It ends when its standard input does, so that it never outlives
// the test that started it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() {
	data := flag.String("data", "", "the folder of the buckets, which is there")
	listen := flag.String("listen", "127.0.0.1:7070", "where it listens")
	flag.Parse()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	if err := run(*data, *listen); err != nil {
		fmt.Fprintln(os.Stderr, "s3:", err)
		os.Exit(1)
	}
}

func run(data, listen string) error {
	attributes := meta.XattrMeta{}
	if err := attributes.Test(data); err != nil {
		return fmt.Errorf("extended attributes in %s: %w", data, err)
	}
	folder, err := posix.New(data, attributes, posix.PosixOpts{})
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(context.Background(), folder, &embedgw.Config{
		RootUserAccess:    "pawl",
		RootUserSecret:    "pawl",
		Ports:             []string{listen},
		MaxConnections:    1000,
		MaxRequests:       1000,
		MultipartMaxParts: 10000,
		KeepAlive:         true,
		Quiet:             true,
	})
}
