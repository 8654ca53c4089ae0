package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/pawl-go/pawl/fence"
)

func throughAWS(ctx context.Context, url string, client *http.Client) (fence.ObjectStore, error) {
	c := s3.New(s3.Options{
		BaseEndpoint: &url, UsePathStyle: true, Region: "us-east-1", HTTPClient: client,
		Credentials: credentials.NewStaticCredentialsProvider("pawl", "pawl", ""),
	})
	_, err := c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String("aws")})
	var refused smithy.APIError
	if errors.As(err, &refused) && refused.ErrorCode() == "BucketAlreadyOwnedByYou" {
		err = nil
	}
	return awsBucket{c, "aws"}, err
}

// An awsBucket is an ObjectStore over github.com/aws/aws-sdk-go-v2/service/s3.
// The rest of this file is for copying: docs/fencing.md links to it.
type awsBucket struct {
	client *s3.Client
	name   string
}

func (b awsBucket) Get(ctx context.Context, key string) (fence.Object, error) {
	o, err := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: &key})
	if err != nil {
		return fence.Object{}, awsError(err)
	}
	defer o.Body.Close()
	body, err := io.ReadAll(o.Body)
	return fence.Object{ETag: aws.ToString(o.ETag), Metadata: o.Metadata, Body: body}, err
}

func (b awsBucket) Put(ctx context.Context, key string, o fence.Object) error {
	put := &s3.PutObjectInput{Bucket: &b.name, Key: &key, Body: bytes.NewReader(o.Body), Metadata: o.Metadata}
	if o.ETag == "" {
		put.IfNoneMatch = aws.String("*")
	} else {
		put.IfMatch = &o.ETag
	}
	_, err := b.client.PutObject(ctx, put)
	return awsError(err)
}

func awsError(err error) error {
	var refused smithy.APIError
	if errors.As(err, &refused) {
		return fence.ObjectError(err, refused.ErrorCode())
	}
	return err
}
