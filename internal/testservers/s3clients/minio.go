package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/pawl-go/pawl/fence"
)

func throughMinIO(ctx context.Context, url string, client *http.Client) (fence.ObjectStore, error) {
	c, err := minio.NewCore(strings.TrimPrefix(url, "http://"), &minio.Options{
		Creds: credentials.NewStaticV4("pawl", "pawl", ""), Region: "us-east-1", Transport: client.Transport,
	})
	if err != nil {
		return nil, err
	}
	err = c.MakeBucket(ctx, "minio", minio.MakeBucketOptions{})
	if minio.ToErrorResponse(err).Code == "BucketAlreadyOwnedByYou" {
		err = nil
	}
	return minioBucket{c, "minio"}, err
}

// A minioBucket is an ObjectStore over github.com/minio/minio-go/v7.
// The rest of this file is for copying: docs/fencing.md links to it.
type minioBucket struct {
	client *minio.Core
	name   string
}

func (b minioBucket) Get(ctx context.Context, key string) (fence.Object, error) {
	r, o, _, err := b.client.GetObject(ctx, b.name, key, minio.GetObjectOptions{})
	if err != nil {
		return fence.Object{}, fence.ObjectError(err, minio.ToErrorResponse(err).Code)
	}
	defer r.Close()
	body, err := io.ReadAll(r)
	return fence.Object{ETag: o.ETag, Metadata: o.UserMetadata, Body: body}, err
}

func (b minioBucket) Put(ctx context.Context, key string, o fence.Object) error {
	put := minio.PutObjectOptions{UserMetadata: o.Metadata}
	if o.ETag == "" {
		put.SetMatchETagExcept("*")
	} else {
		put.SetMatchETag(o.ETag)
	}
	_, err := b.client.Client.PutObject(ctx, b.name, key, bytes.NewReader(o.Body), int64(len(o.Body)), put)
	if err != nil {
		return fence.ObjectError(err, minio.ToErrorResponse(err).Code)
	}
	return nil
}
