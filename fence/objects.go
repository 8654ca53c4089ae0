package fence

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/backoff"
)

// Object is an object of an S3-like store.
type Object struct {
	ETag     string            // as the store returned it
	Metadata map[string]string // the user's; in HTTP their names begin with "x-amz-meta-", and ignore case
	Body     []byte
}

// An ObjectStore is a bucket of an S3-like store, as [UpdateObject] needs it: a few lines
// over the client of your program. docs/fencing.md has them for aws-sdk-go-v2 and for
// minio-go.
type ObjectStore interface {
	// Get reads an object. The error matches ErrNoObject if the object does not exist.
	Get(ctx context.Context, key string) (Object, error)

	// Put writes the body and the metadata of an object in one step. If o has an ETag,
	// the stored object must have the same ETag (If-Match). If o has none, there must be
	// no object (If-None-Match: *). Otherwise Put writes nothing, and the error matches
	// ErrObjectChanged.
	Put(ctx context.Context, key string, o Object) error
}

// These errors of an [ObjectStore] are not failures. [ObjectError] creates them.
var (
	ErrNoObject      = errors.New("pawl: there is no such object")
	ErrObjectChanged = errors.New("pawl: the object has changed")
)

// ObjectError makes an error of an S3-like store match [ErrNoObject] or
// [ErrObjectChanged], if its code means the same. The code is the store's, such as
// "NoSuchKey": the ErrorCode of a smithy.APIError, or the Code of a minio.ErrorResponse.
func ObjectError(err error, code string) error {
	switch code {
	case "NoSuchKey", "NotFound":
		return fmt.Errorf("%w: %w", ErrNoObject, err)
	case "PreconditionFailed", "ConditionalRequestConflict":
		return fmt.Errorf("%w: %w", ErrObjectChanged, err)
	}
	return err
}

// The metadata of an object that was written under a fence.
const (
	ObjectFence = "pawl-fence" // the fence, in decimal
	objectWrite = "pawl-write" // identifies the call of UpdateObject
)

const maxChanges = 20 // the number of changes by other writers after which UpdateObject gives up

// UpdateObject writes an object, or returns a [*StaleError] if a higher fence has written
// it. UpdateObject reads the object, with the fence in its metadata, and calls update,
// which makes the new body from the old body, or from nil if there is no object. Then it
// writes the new object if the old one is unchanged. Otherwise it begins again, so update
// may run more than once. Any fence may overwrite an object that has none.
//
// The new body must have the fence in it, in decimal, at any place: that makes the
// condition safe. An ETag is mostly a hash of the body, so a body that returns to an old
// content has its old ETag again. A paused holder that had read that content could then
// write, whatever the metadata says. UpdateObject refuses a body without the fence with a
// [*pawl.InvalidError].
//
// It is for objects that fit into memory. Write a large object under a key that has the
// fence in it, and then store that key in a small object with UpdateObject. A holder must
// not run two calls for one object at a time. Without the permission to list the bucket,
// S3 does not report that an object is missing, and the first write fails with
// AccessDenied.
//
// If the store fails, the error is a [*pawl.BackendError], and the object may have been
// written. All writers must use UpdateObject, and the store must obey the conditions. Old
// stores ignore them: see [ProbeObjectStore].
func UpdateObject(ctx context.Context, store ObjectStore, key string, fence uint64, update func(old []byte) (body []byte, err error)) error {
	if err := cmp.Or(checkNotNil(ctx, "store", store), checkNotNil(ctx, "update", update), validateKey(key), validateFence(fence)); err != nil {
		return err
	}
	writeID := rand.Text()
	for n := range maxChanges {
		old, err := readObject(ctx, store, key)
		if err != nil {
			return err
		}
		if old.metadata(objectWrite) == writeID {
			return nil // the store got the write twice, and refused the second request
		}
		highest, err := old.fence()
		if err != nil {
			return permanentError(key, err, "another program has written it: put an object without that metadata in its place")
		}
		if err := checkNotBelow(key, fence, highest); err != nil {
			return err
		}
		o := Object{ETag: old.ETag, Metadata: old.otherMetadata()}
		if o.Body, err = update(old.Body); err != nil {
			return err
		}
		if !hasNumber(o.Body, fence) {
			return &pawl.InvalidError{Argument: "body of the object", Problem: "does not have the fence in it", Allowed: strconv.FormatUint(fence, 10) + " in decimal, anywhere"}
		}
		o.Metadata[ObjectFence], o.Metadata[objectWrite] = strconv.FormatUint(fence, 10), writeID
		err = store.Put(ctx, key, o)
		if !isChanged(err) {
			return storeError("write", key, err)
		}
		// Each pause is longer, so that concurrent writers separate.
		if err := backoff.Wait(ctx, backoff.Jitter(backoff.Doubled(5*time.Millisecond, n, time.Second))); err != nil {
			return err
		}
	}
	return storeError("write", key, fmt.Errorf("%w %d times", ErrObjectChanged, maxChanges))
}

// ProbeObjectStore tests whether a store obeys the conditions of [UpdateObject]. It
// writes an object under key, which must have no other use. The error is a
// [*pawl.BackendError]. It is Permanent if the store ignores the conditions, so that
// fences do not guard its objects.
func ProbeObjectStore(ctx context.Context, store ObjectStore, key string) error {
	if err := cmp.Or(checkNotNil(ctx, "store", store), validateKey(key)); err != nil {
		return err
	}
	if err := store.Put(ctx, key, Object{Body: []byte(rand.Text())}); err != nil && !isChanged(err) {
		return storeError("write", key, err)
	}
	for etag, condition := range map[string]string{
		"": "If-None-Match: *", `"00000000000000000000000000000000"`: "If-Match",
	} {
		switch err := store.Put(ctx, key, Object{ETag: etag, Body: []byte(rand.Text())}); {
		case err == nil:
			return permanentError(key, errors.New("the store ignores "+condition), "fences do not guard its objects: use a store with conditional writes")
		case !isChanged(err):
			return storeError("write", key, err)
		}
	}
	old, err := readObject(ctx, store, key)
	if err != nil {
		return err
	}
	fence, err := old.fence()
	if err != nil {
		return permanentError(key, err, "probe with a key that has no other use")
	}
	fence = max(fence, uint64(time.Now().UnixMicro()))
	if err := UpdateObject(ctx, store, key, fence, func([]byte) ([]byte, error) {
		return strconv.AppendUint(nil, fence, 10), nil
	}); err != nil {
		return err
	}
	updated, err := readObject(ctx, store, key)
	if err != nil {
		return err
	}
	if stored, err := updated.fence(); err != nil || stored < fence {
		return permanentError(key, errors.New("the store does not keep metadata"), "look at what Put and Get do with Metadata")
	}
	return nil
}

// validateKey refuses keys that no S3-like store takes.
func validateKey(key string) error {
	if key == "" || len(key) > 1024 {
		return &pawl.InvalidError{Argument: "key of the object", Problem: fmt.Sprintf("has %d bytes", len(key)), Allowed: "1 to 1024"}
	}
	return nil
}

// readObject reads an object, and returns an empty one if it does not exist.
func readObject(ctx context.Context, store ObjectStore, key string) (Object, error) {
	o, err := store.Get(ctx, key)
	switch {
	case errors.Is(err, ErrNoObject):
		return Object{}, nil
	case err != nil:
		return Object{}, storeError("read", key, err)
	case o.ETag == "" || strings.HasPrefix(o.ETag, "W/"):
		return Object{}, permanentError(key, fmt.Errorf("its ETag is %q, which no condition can contain", o.ETag), "look at the ETag that Get returns, and look for a proxy that changes it")
	}
	return o, nil
}

// isChanged reports whether a store refused a Put because of the stored object. A
// deleted object counts as changed.
func isChanged(err error) bool {
	return errors.Is(err, ErrObjectChanged) || errors.Is(err, ErrNoObject)
}

func storeError(op pawl.Op, key string, err error) error {
	if err == nil {
		return nil
	}
	return backendError("object store", op, key, err)
}

func permanentError(key string, err error, hint string) error {
	failed := backendError("object store", "check the fence for", key, err)
	failed.Permanent, failed.Hint = true, hint
	return failed
}

// fence returns the fence with which an object was written, or 0.
func (o *Object) fence() (uint64, error) {
	text := o.metadata(ObjectFence)
	if text == "" {
		return 0, nil
	}
	fence, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("its metadata %s is not a fence: %.40q", ObjectFence, text)
	}
	return fence, nil
}

func (o *Object) metadata(name string) string {
	for k, v := range o.Metadata {
		if strings.EqualFold(k, name) {
			return v
		}
	}
	return ""
}

// otherMetadata returns the metadata without the two names of this package.
func (o *Object) otherMetadata() map[string]string {
	m := map[string]string{}
	maps.Copy(m, o.Metadata)
	maps.DeleteFunc(m, func(k, _ string) bool {
		return strings.EqualFold(k, ObjectFence) || strings.EqualFold(k, objectWrite)
	})
	return m
}

// hasNumber reports whether a body contains the fence, and not only as a part of a longer
// number.
func hasNumber(body []byte, fence uint64) bool {
	for number := range bytes.FieldsFuncSeq(body, func(r rune) bool { return r < '0' || '9' < r }) {
		if string(number) == strconv.FormatUint(fence, 10) {
			return true
		}
	}
	return false
}
