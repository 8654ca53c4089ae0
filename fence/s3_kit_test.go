package fence_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/fence"
	"github.com/pawl-go/pawl/internal/testservers"
)

// A bucket is an ObjectStore without an SDK: it speaks S3's protocol itself.
// internal/testservers/s3clients does the same with common clients.
type bucket struct {
	url string // of the bucket
}

// startS3 starts versitygw, with a bucket.
func startS3(t *testing.T) (b *bucket) {
	t.Helper()
	nightly(t, "it builds versitygw")
	data := t.TempDir()
	addr := testservers.Start(t, "s3", func(addr string) []string { return []string{"-data", data, "-listen", addr} })
	b = &bucket{"http://" + addr + "/fences"}
	if _, _, err := b.do(t.Context(), http.MethodPut, "", nil, nil); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bucket) Get(ctx context.Context, key string) (fence.Object, error) {
	header, body, err := b.do(ctx, http.MethodGet, "/"+key, nil, nil)
	o := fence.Object{ETag: header.Get("ETag"), Metadata: map[string]string{}, Body: body}
	for name := range header {
		if name, ok := strings.CutPrefix(name, "X-Amz-Meta-"); ok {
			o.Metadata[name] = header.Get("X-Amz-Meta-" + name)
		}
	}
	return o, err
}

func (b *bucket) Put(ctx context.Context, key string, o fence.Object) error {
	header := http.Header{"If-None-Match": {"*"}}
	if o.ETag != "" {
		header = http.Header{"If-Match": {o.ETag}}
	}
	for name, value := range o.Metadata {
		header.Set("X-Amz-Meta-"+name, value)
	}
	_, _, err := b.do(ctx, http.MethodPut, "/"+key, header, o.Body)
	return err
}

func (b *bucket) do(ctx context.Context, method, path string, header http.Header, body []byte) (http.Header, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, b.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	maps.Copy(r.Header, header)
	sign(r, body, time.Now().UTC())
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		var refused struct{ Code, Message string }
		_ = xml.Unmarshal(said, &refused)
		err = fence.ObjectError(fmt.Errorf("%s: %s", answer.Status, refused.Message), refused.Code)
	}
	return answer.Header, said, err
}

// sign signs a request by AWS Signature Version 4.
func sign(r *http.Request, body []byte, now time.Time) {
	const region = "us-east-1/s3/aws4_request"
	day, second := now.Format("20060102"), now.Format("20060102T150405Z")
	sum := func(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }
	r.Header.Set("X-Amz-Date", second)
	r.Header.Set("X-Amz-Content-Sha256", sum(body))
	names, lines := []string{"host"}, ""
	for name := range r.Header {
		names = append(names, strings.ToLower(name))
	}
	slices.Sort(names)
	for _, name := range names {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.URL.Host
		}
		lines += name + ":" + value + "\n"
	}
	signed := strings.Join(names, ";")
	request := strings.Join([]string{r.Method, r.URL.EscapedPath(), "", lines, signed, sum(body)}, "\n")
	key := []byte("AWS4pawl")
	for _, part := range append([]string{day}, strings.Split(region, "/")...) {
		key = mac(key, part)
	}
	text := strings.Join([]string{"AWS4-HMAC-SHA256", second, day + "/" + region, sum([]byte(request))}, "\n")
	r.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=pawl/%s/%s, SignedHeaders=%s, Signature=%s",
		day, region, signed, hex.EncodeToString(mac(key, text))))
}

func mac(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}
