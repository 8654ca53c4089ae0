package fence_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/fence"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/fencetest"
)

// report returns an update whose body contains its fence.
func report(f uint64, text string) func([]byte) ([]byte, error) {
	return func([]byte) ([]byte, error) { return fmt.Appendf(nil, "# fence %d\n%s\n", f, text), nil }
}

func TestUpdateObjectRefusesStaleFences(t *testing.T) {
	b := newBucket()
	ctx := t.Context()
	write := func(key string, f uint64) error { return fence.UpdateObject(ctx, b, key, f, report(f, "report")) }
	fencetest.ChecksStaleWrites(t, write)
	fencetest.ChecksInvalidFences(t, write)
	for _, key := range []string{"", strings.Repeat("x", 1025)} {
		fencetest.WantRejected(t, write, key, 1)
	}
	if err := write(strings.Repeat("x/y", 80), 1); err != nil {
		t.Errorf("a long key: %v", err)
	}

	// UpdateObject returns the error of update, and writes nothing.
	errFull := errors.New("full")
	if err := fence.UpdateObject(ctx, b, "new", 5, func(old []byte) ([]byte, error) {
		if old != nil {
			t.Errorf("update got %q; want no object", old)
		}
		return nil, errFull
	}); !errors.Is(err, errFull) {
		t.Error(err)
	}
	if _, err := b.Get(ctx, "new"); !errors.Is(err, fence.ErrNoObject) {
		t.Errorf("after an error of update: %v; want no object", err)
	}

	// UpdateObject keeps other metadata. Any fence may overwrite an object that has none.
	noError(t, b.Put(ctx, "old", fence.Object{Body: []byte("one"), Metadata: map[string]string{"Author": "somebody"}}))
	if err := fence.UpdateObject(ctx, b, "old", 5, func(old []byte) ([]byte, error) {
		return append(old, " two 5"...), nil
	}); err != nil {
		t.Fatal(err)
	}
	o := must(b.Get(ctx, "old"))(t)
	if string(o.Body) != "one two 5" || o.Metadata["Author"] != "somebody" || o.Metadata["Pawl-Fence"] != "5" {
		t.Errorf("the object is %q with the metadata %v", o.Body, o.Metadata)
	}
	// A value that is not a fence does not count as a low fence.
	noError(t, b.Put(ctx, "old", fence.Object{ETag: o.ETag, Metadata: map[string]string{"pawl-fence": "five"}}))
	failed, ok := errors.AsType[*pawl.BackendError](write("old", 9))
	if !ok || !failed.Permanent || !strings.Contains(failed.Error(), `"five"`) {
		t.Errorf("metadata that is not a fence: %v; want a permanent error", failed)
	}
	if err := fence.UpdateObject(ctx, failingStore{}, "x", 5, report(5, "")); !errors.Is(err, pawl.ErrUnavailable) {
		t.Errorf("without a bucket: %v; want ErrUnavailable", err)
	}
}

// An ETag is a hash of the body. So after a repeated body, the condition of a paused
// holder is true again. A body that contains its fence is never repeated.
func TestARepeatedBodyIsRefused(t *testing.T) {
	b := newBucket()
	ctx := t.Context()
	put := func(etag, body string, f uint64) string {
		o := fence.Object{ETag: etag, Body: []byte(body), Metadata: map[string]string{fence.ObjectFence: strconv.FormatUint(f, 10)}}
		noError(t, b.Put(ctx, "switch", o))
		return must(b.Get(ctx, "switch"))(t).ETag
	}
	off := put("", "off", 1)
	secondOff := put(put(off, "on", 2), "off", 3)
	if secondOff != off {
		t.Fatalf("equal bodies have different ETags: %s, %s", off, secondOff)
	}
	put(off, "on", 2) // the store accepts a write of the paused holder with fence 2, which had read the first body

	err := fence.UpdateObject(ctx, b, "switch", 4, func([]byte) ([]byte, error) { return []byte("off"), nil })
	if !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), "fence") {
		t.Errorf("a body without its fence: %v; want ErrInvalid", err)
	}
	for f, body := range map[uint64]string{4: "14 41 4a4", 40: "0400 (40)"} {
		if err := fence.UpdateObject(ctx, b, strconv.FormatUint(f, 10), f, func([]byte) ([]byte, error) { return []byte(body), nil }); err != nil {
			t.Errorf("%q contains %d: %v", body, f, err)
		}
	}
	for _, body := range []string{"", "on", "14", "41", "141 44"} {
		if err := fence.UpdateObject(ctx, b, "none", 4, func([]byte) ([]byte, error) { return []byte(body), nil }); !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("%q does not contain 4: %v; want ErrInvalid", body, err)
		}
	}
}

// An interruptedStore calls beforePut before its first Put, and afterPut after it.
type interruptedStore struct {
	fence.ObjectStore
	beforePut func()
	afterPut  func(err error) error
}

func (s *interruptedStore) Put(ctx context.Context, key string, o fence.Object) error {
	if beforePut := s.beforePut; beforePut != nil {
		s.beforePut = nil
		beforePut()
	}
	err := s.ObjectStore.Put(ctx, key, o)
	if afterPut := s.afterPut; afterPut != nil {
		s.afterPut = nil
		return afterPut(err)
	}
	return err
}

// A holder is paused between its read and its write, and another holder writes a higher
// fence meanwhile.
func TestAHolderIsPausedBetweenReadingAndWriting(t *testing.T) {
	b := newBucket()
	for _, key := range []string{"new", "old"} {
		if key == "old" {
			must(0, fence.UpdateObject(t.Context(), b, key, 3, report(3, "before")))(t)
		}
		store := &interruptedStore{ObjectStore: b, beforePut: func() {
			must(0, fence.UpdateObject(t.Context(), b, key, 7, report(7, "by the next holder")))(t)
		}}
		fencetest.WantStale(t, fence.UpdateObject(t.Context(), store, key, 5, report(5, "too late")), key, 5, 7)
		if o := must(b.Get(t.Context(), key))(t); !strings.Contains(string(o.Body), "by the next holder") {
			t.Errorf("%s is %q, want the report of the next holder", key, o.Body)
		}
	}
}

// A client gets no answer, and repeats the write. The store refuses the second request,
// because the first one has changed the object.
func TestAWriteThatTheStoreGetsTwiceCountsOnce(t *testing.T) {
	b := newBucket()
	add := func(old []byte) ([]byte, error) { return append(old, "5;"...), nil }
	store := &interruptedStore{ObjectStore: b, afterPut: func(err error) error {
		return errors.Join(err, fence.ErrObjectChanged)
	}}
	for range 2 {
		noError(t, fence.UpdateObject(t.Context(), store, "log", 5, add))
	}
	if o := must(b.Get(t.Context(), "log"))(t); string(o.Body) != "5;5;" {
		t.Errorf("after two updates the body is %q, want each once", o.Body)
	}
}

// Many holders update one object at the same time. All of them write, one after the
// other.
func TestConcurrentUpdatesOfOneObjectAreAllWritten(t *testing.T) {
	b := newBucket()
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			if err := fence.UpdateObject(context.Background(), b, "log", 5, func(old []byte) ([]byte, error) {
				return fmt.Appendf(old, "5 by %d\n", n), nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if o := must(b.Get(t.Context(), "log"))(t); strings.Count(string(o.Body), "\n") != 8 {
		t.Errorf("the body is %q, want 8 lines", o.Body)
	}
}

// UpdateObject gives up after 20 changes of the object, or when ctx ends.
func TestUpdateObjectGivesUpOnAnObjectThatKeepsChanging(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		tries := 0
		update := func([]byte) ([]byte, error) {
			tries++
			return []byte("5"), nil
		}
		failed, ok := errors.AsType[*pawl.BackendError](fence.UpdateObject(t.Context(), changingStore{}, "x", 5, update))
		if !ok || failed.Permanent || !errors.Is(failed, fence.ErrObjectChanged) || tries != 20 {
			t.Errorf("after %d tries: %v; want ErrObjectChanged after 20", tries, failed)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := fence.UpdateObject(ctx, changingStore{}, "x", 5, update); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// In a changingStore another writer is always faster.
type changingStore struct{}

func (changingStore) Get(context.Context, string) (fence.Object, error) {
	return fence.Object{ETag: "x"}, nil
}

func (changingStore) Put(context.Context, string, fence.Object) error { return fence.ErrObjectChanged }

// An ETag that no condition can contain cannot protect a write.
func TestABadETagIsAPermanentError(t *testing.T) {
	for _, etag := range []string{"", `W/"x"`} {
		failed, ok := errors.AsType[*pawl.BackendError](fence.UpdateObject(t.Context(), badETagStore(etag), "x", 5, report(5, "")))
		if !ok || !failed.Permanent || !strings.Contains(failed.Error(), strconv.Quote(etag)) {
			t.Errorf("the ETag %q: %v; want a permanent error with it", etag, failed)
		}
	}
}

// A badETagStore returns a bad ETag: its adapter omits the ETag, or its proxy changes it.
type badETagStore string

func (s badETagStore) Get(context.Context, string) (fence.Object, error) {
	return fence.Object{ETag: string(s)}, nil
}

func (badETagStore) Put(context.Context, string, fence.Object) error { return nil }

func TestProbeObjectStoreDetectsIgnoredConditions(t *testing.T) {
	b := newBucket()
	for range 2 { // the second time, the object exists
		noError(t, fence.ProbeObjectStore(t.Context(), b, "pawl-probe"))
	}
	for what, store := range map[string]fence.ObjectStore{
		"If-Match": oldStore{b, func(o *fence.Object, stored fence.Object) {
			if o.ETag != "" {
				o.ETag = stored.ETag
			}
		}},
		"If-None-Match": oldStore{b, func(o *fence.Object, stored fence.Object) {
			if o.ETag == "" {
				o.ETag = stored.ETag
			}
		}},
		"metadata": oldStore{b, func(o *fence.Object, _ fence.Object) { o.Metadata = nil }},
	} {
		failed, ok := errors.AsType[*pawl.BackendError](fence.ProbeObjectStore(t.Context(), store, "pawl-probe"))
		if !ok || !failed.Permanent || !strings.Contains(failed.Error(), what) || failed.Hint == "" {
			t.Errorf("a store without %s: %v; want a permanent error that names it", what, failed)
		}
	}
	if err := fence.ProbeObjectStore(t.Context(), b, ""); !errors.Is(err, pawl.ErrInvalid) {
		t.Error(err)
	}
	if err := fence.ProbeObjectStore(t.Context(), failingStore{}, "x"); !errors.Is(err, pawl.ErrUnavailable) {
		t.Error(err)
	}
}

// An oldStore ignores a part of a request, as old stores do.
type oldStore struct {
	*bucket
	change func(o *fence.Object, stored fence.Object)
}

func (s oldStore) Put(ctx context.Context, key string, o fence.Object) error {
	stored, err := s.Get(ctx, key)
	if err != nil && !errors.Is(err, fence.ErrNoObject) {
		return err
	}
	s.change(&o, stored)
	return s.bucket.Put(ctx, key, o)
}
