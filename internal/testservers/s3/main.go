// Command s3 is the object store for the tests of package fence: versitygw, which speaks
// S3's protocol, on a folder. It has its own module, so that no other module depends on
// the server.
//
//	s3 -data FOLDER -listen 127.0.0.1:7070
//
// The file system of the folder must have extended attributes, in which the server stores
// the metadata of objects. The user and the password are "pawl". The server prints only
// an error of its start. It ends when its standard input ends, so that it does not
// outlive the test that started it.
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
	data := flag.String("data", "", "the existing `FOLDER` of the buckets")
	listen := flag.String("listen", "127.0.0.1:7070", "the `ADDRESS` at which it listens")
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
