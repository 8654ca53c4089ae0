package fence_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/fence"
	"github.com/pawl-go/pawl/internal/fencetest"
	"github.com/pawl-go/pawl/memlock"
)

func startService(t *testing.T, g fence.Guarder) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(fence.Handler(g, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "written by "+r.Header.Get(fence.HeaderToken))
	})))
	t.Cleanup(s.Close)
	return s
}

func TestAServiceRefusesStaleRequests(t *testing.T) {
	s := startService(t, new(fence.Memory))
	request := func(method string) func(string, uint64) error {
		return func(resource string, f uint64) error {
			r := must(http.NewRequestWithContext(t.Context(), method, s.URL, nil))(t)
			r.Header.Set(fence.HeaderToken, strconv.FormatUint(f, 10))
			r.Header.Set(fence.HeaderResource, resource)
			answer := must(http.DefaultClient.Do(r))(t)
			defer answer.Body.Close()
			return fence.ResponseError(answer)
		}
	}
	write, read := request(http.MethodPost), request(http.MethodGet)
	fencetest.ChecksStaleWrites(t, write)
	fencetest.ChecksArguments(t, write)
	fencetest.ChecksReadersAndWriters(t, write, read)
}

func accountResource(*http.Request) string { return "account" }

func TestTransportWithoutAResourceSendsNothing(t *testing.T) {
	client := &http.Client{Transport: &fence.Transport{Base: http.NewFileTransport(http.Dir(t.TempDir()))}}
	answer, err := client.Post("http://localhost/", "text/plain", strings.NewReader("x"))
	if !errors.Is(err, pawl.ErrInvalid) {
		t.Errorf("%v, %v; want ErrInvalid", answer, err)
	}
}

func TestTransportSendsTheFenceOfTheContext(t *testing.T) {
	s := startService(t, new(fence.Memory))
	client := &http.Client{Transport: &fence.Transport{Resource: accountResource}}
	locks := must(pawl.New(memlock.New(nil), nil))(t)
	defer locks.Close()
	post := func(ctx context.Context) (int, string) {
		r := must(http.NewRequestWithContext(ctx, http.MethodPost, s.URL, nil))(t)
		answer := must(client.Do(r))(t)
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(body)
	}
	err := locks.Mutex("account").Do(t.Context(), func(ctx context.Context) error {
		f, _ := pawl.FenceOf(ctx, "account")
		if code, body := post(ctx); code != http.StatusOK || body != "written by "+strconv.FormatUint(f, 10) {
			t.Errorf("got %d %s; want success, and the fence %d", code, body, f)
		}
		return nil
	})
	noError(t, err)
	if code, body := post(t.Context()); code != http.StatusPreconditionRequired {
		t.Errorf("without a lease: %d %s; want 428", code, body)
	}
}

type failingGuard struct{}

func (failingGuard) Guard(context.Context, string, uint64, func(context.Context) error) error {
	return errors.New("the password is sesame")
}

func TestInvalidHeadersAreRefused(t *testing.T) {
	good, bad := startService(t, new(fence.Memory)), startService(t, failingGuard{})
	twice, number := []string{"1", "2"}, []string{"1"}
	for name, c := range map[string]struct {
		url     string
		method  string
		headers http.Header
		want    int
	}{
		"no headers":                     {good.URL, "POST", http.Header{}, 428},
		"no resource":                    {good.URL, "PUT", http.Header{fence.HeaderToken: number}, 428},
		"no fence":                       {good.URL, "PATCH", http.Header{fence.HeaderResource: {"x"}}, 428},
		"no number":                      {good.URL, "POST", http.Header{fence.HeaderToken: {"one"}, fence.HeaderResource: {"x"}}, 400},
		"negative":                       {good.URL, "POST", http.Header{fence.HeaderToken: {"-1"}, fence.HeaderResource: {"x"}}, 400},
		"zero":                           {good.URL, "POST", http.Header{fence.HeaderToken: {"0"}, fence.HeaderResource: {"x"}}, 400},
		"empty":                          {good.URL, "POST", http.Header{fence.HeaderToken: {""}, fence.HeaderResource: {"x"}}, 400},
		"a fraction":                     {good.URL, "POST", http.Header{fence.HeaderToken: {"1.0"}, fence.HeaderResource: {"x"}}, 400},
		"too large":                      {good.URL, "POST", http.Header{fence.HeaderToken: {"18446744073709551616"}, fence.HeaderResource: {"x"}}, 400},
		"twice":                          {good.URL, "POST", http.Header{fence.HeaderToken: twice, fence.HeaderResource: {"x"}}, 400},
		"the same twice":                 {good.URL, "POST", http.Header{fence.HeaderToken: {"1", "1"}, fence.HeaderResource: {"x"}}, 400},
		"two resources":                  {good.URL, "POST", http.Header{fence.HeaderToken: number, fence.HeaderResource: twice}, 400},
		"two in one":                     {good.URL, "POST", http.Header{fence.HeaderToken: {"1, 2"}, fence.HeaderResource: {"x"}}, 400},
		"a reader without a number":      {good.URL, "GET", http.Header{fence.HeaderToken: {"one"}, fence.HeaderResource: {"x"}}, 400},
		"a reader without a resource":    {good.URL, "GET", http.Header{fence.HeaderToken: number}, 428},
		"a guard that is down":           {bad.URL, "DELETE", http.Header{fence.HeaderToken: number, fence.HeaderResource: {"x"}}, 503},
		"reading":                        {bad.URL, "GET", http.Header{}, 200},
		"reading past a guard of writes": {bad.URL, "GET", http.Header{fence.HeaderToken: {"one"}}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			r := must(http.NewRequestWithContext(t.Context(), c.method, c.url, nil))(t)
			r.Header = c.headers
			answer := must(http.DefaultClient.Do(r))(t)
			defer answer.Body.Close()
			var body bytes.Buffer
			answer.Body = io.NopCloser(io.TeeReader(answer.Body, &body))
			responseErr := fence.ResponseError(answer)
			if answer.StatusCode != c.want {
				t.Errorf("%d, want %d: %s", answer.StatusCode, c.want, body.String())
			}
			for code, target := range map[int]error{400: pawl.ErrInvalid, 428: pawl.ErrInvalid, 503: pawl.ErrUnavailable} {
				if errors.Is(responseErr, target) != (c.want == code || code == 428 && c.want == 400 || code == 400 && c.want == 428) {
					t.Errorf("ResponseError returned %v for the status %d", responseErr, c.want)
				}
			}
			if strings.Contains(body.String(), "sesame") {
				t.Errorf("the body has the password: %s", body.String())
			}
			if c.want == 200 {
				return
			}
			var p struct {
				Type, Title, Detail string
				Status              int
			}
			if answer.Header.Get("Content-Type") != "application/problem+json" || json.Unmarshal(body.Bytes(), &p) != nil || p.Status != c.want || p.Type == "" || p.Title == "" || p.Detail == "" {
				t.Errorf("want a problem document; got %s %s", answer.Header, body.String())
			}
		})
	}
}

// ResponseError ignores the problem document of another service.
func TestProblemsOfOtherServicesAreNoStaleErrors(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json; charset=utf-8")
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"title": "Conflict", "status": 409, "highest": 9, "fence": 5, "resource": "account"}`)
	}))
	defer s.Close()
	answer := must(http.Get(s.URL))(t)
	defer answer.Body.Close()
	noError(t, fence.ResponseError(answer))
}

// A fence is valid only for the resource to which the request writes.
func TestAFenceOfAnotherResourceIsRefused(t *testing.T) {
	path := func(r *http.Request) string { return strings.TrimPrefix(r.URL.Path, "/") }
	s := httptest.NewServer(fence.Handler(new(fence.Memory), path, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	defer s.Close()
	locks := must(pawl.New(memlock.New(nil), nil))(t)
	defer locks.Close()
	err := locks.Mutex("account").Do(t.Context(), func(ctx context.Context) error {
		return locks.Semaphore("connections", 2).Do(ctx, func(ctx context.Context) error {
			for resource, want := range map[string]int{
				"": http.StatusPreconditionRequired, "connections": http.StatusBadRequest, "account": http.StatusOK,
			} {
				client := &http.Client{Transport: &fence.Transport{Resource: func(*http.Request) string { return resource }}}
				r, err := http.NewRequestWithContext(ctx, http.MethodPut, s.URL+"/account", nil)
				if err != nil {
					return err
				}
				answer, err := client.Do(r)
				if err != nil {
					return err
				}
				if answer.Body.Close(); answer.StatusCode != want {
					t.Errorf("%q: %s; want the status %d", resource, answer.Status, want)
				}
				r.Method = http.MethodGet // reading needs no lock
				if answer, err = client.Do(r); err != nil {
					return err
				}
				if answer.Body.Close(); answer.StatusCode != http.StatusOK {
					t.Errorf("reading under a lock on %q: %s", resource, answer.Status)
				}
			}
			return nil
		})
	})
	noError(t, err)
}

// failingCommit is a guard whose commit fails after the handler has answered.
type failingCommit struct{}

func (failingCommit) Guard(ctx context.Context, resource string, f uint64, write func(ctx context.Context) error) error {
	if err := write(ctx); err != nil {
		return err
	}
	return &fence.StaleError{Resource: resource, Fence: f, Highest: f + 1}
}

func TestARolledBackAnswerIsNotSent(t *testing.T) {
	s := startService(t, failingCommit{})
	r := must(http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, nil))(t)
	r.Header.Set(fence.HeaderToken, "1")
	r.Header.Set(fence.HeaderResource, "account")
	if answer, err := http.DefaultClient.Do(r); err == nil {
		defer answer.Body.Close()
		t.Errorf("the client got the answer %s of a failed commit", answer.Status)
	}
}
