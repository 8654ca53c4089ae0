package fence_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"

	"github.com/pawl-go/pawl/fence"
)

// A bucket is an ObjectStore in memory that imitates S3: an ETag is a hash of the body,
// and the names of metadata are header names.
// TestAPausedHolderIsRefusedByS3ThroughItsClients writes to a real store.
type bucket struct {
	mu      sync.Mutex
	objects map[string]fence.Object
}

func newBucket() *bucket { return &bucket{objects: map[string]fence.Object{}} }

func (b *bucket) Get(_ context.Context, key string) (fence.Object, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o, found := b.objects[key]
	if !found {
		return o, fence.ObjectError(errors.New("404 Not Found"), "NoSuchKey")
	}
	o.Body, o.Metadata = bytes.Clone(o.Body), maps.Clone(o.Metadata)
	return o, nil
}

func (b *bucket) Put(_ context.Context, key string, o fence.Object) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if o.ETag != b.objects[key].ETag {
		return fence.ObjectError(errors.New("412 Precondition Failed"), "PreconditionFailed")
	}
	stored := fence.Object{ETag: fmt.Sprintf(`"%x"`, sha256.Sum256(o.Body)), Metadata: map[string]string{}, Body: bytes.Clone(o.Body)}
	for name, value := range o.Metadata {
		stored.Metadata[http.CanonicalHeaderKey(name)] = value
	}
	b.objects[key] = stored
	return nil
}

// A failingStore returns an error for every request.
type failingStore struct{}

func (failingStore) Get(context.Context, string) (fence.Object, error) {
	return fence.Object{}, errors.New("no such bucket")
}

func (failingStore) Put(context.Context, string, fence.Object) error {
	return errors.New("no such bucket")
}
