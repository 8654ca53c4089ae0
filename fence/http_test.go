package fence_test

import (
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
	"github.com/pawl-go/pawl/memlock"
)

func service(t *testing.T, g fence.Guarder) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(fence.Handler(g, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "written by "+r.Header.Get(fence.HeaderToken))
	})))
	t.Cleanup(s.Close)
	return s
}

func TestAServiceRefusesStaleRequests(t *testing.T) {
	s := service(t, new(fence.Memory))
	write := func(resource string, f uint64) error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(fence.HeaderToken, strconv.FormatUint(f, 10))
		r.Header.Set(fence.HeaderResource, resource)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if answer.StatusCode == http.StatusBadRequest {
			return pawl.ErrInvalid
		}
		return fence.ResponseError(answer)
	}
	refuses(t, write)
	rejects(t, write)
}

func TestTheFenceOfTheContextIsSent(t *testing.T) {
	s := service(t, new(fence.Memory))
	client := &http.Client{Transport: &fence.Transport{}}
	locks, err := pawl.New(memlock.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close(t.Context())
	post := func(ctx context.Context) (int, string) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(body)
	}
	err = locks.Mutex("account").Do(t.Context(), func(ctx context.Context) error {
		f, _ := pawl.FenceFromContext(ctx)
		if code, body := post(ctx); code != http.StatusOK || body != "written by "+strconv.FormatUint(f, 10) {
			t.Errorf("%d %s; the fence is %d", code, body, f)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if code, body := post(t.Context()); code != http.StatusPreconditionRequired {
		t.Errorf("without a lease: %d %s", code, body)
	}
}

type broken struct{}

func (broken) Guard(context.Context, string, uint64, func(context.Context) error) error {
	return errors.New("the password is sesame")
}

func TestWhatIsNoFenceIsAProblem(t *testing.T) {
	good, bad := service(t, new(fence.Memory)), service(t, broken{})
	for name, c := range map[string]struct {
		url     string
		method  string
		headers http.Header
		want    int
	}{
		"no headers":           {good.URL, "POST", http.Header{}, 428},
		"no resource":          {good.URL, "PUT", http.Header{fence.HeaderToken: {"1"}}, 428},
		"no number":            {good.URL, "POST", http.Header{fence.HeaderToken: {"one"}, fence.HeaderResource: {"x"}}, 400},
		"negative":             {good.URL, "POST", http.Header{fence.HeaderToken: {"-1"}, fence.HeaderResource: {"x"}}, 400},
		"zero":                 {good.URL, "POST", http.Header{fence.HeaderToken: {"0"}, fence.HeaderResource: {"x"}}, 400},
		"twice":                {good.URL, "POST", http.Header{fence.HeaderToken: {"1", "2"}, fence.HeaderResource: {"x"}}, 400},
		"two in one":           {good.URL, "POST", http.Header{fence.HeaderToken: {"1, 2"}, fence.HeaderResource: {"x"}}, 400},
		"a guard that is down": {bad.URL, "DELETE", http.Header{fence.HeaderToken: {"1"}, fence.HeaderResource: {"x"}}, 503},
		"reading":              {bad.URL, "GET", http.Header{}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), c.method, c.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header = c.headers
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			body, _ := io.ReadAll(answer.Body)
			if answer.StatusCode != c.want {
				t.Errorf("%d, want %d: %s", answer.StatusCode, c.want, body)
			}
			if strings.Contains(string(body), "sesame") {
				t.Errorf("it tells: %s", body)
			}
			if c.want == 200 {
				return
			}
			var p struct {
				Title, Detail string
				Status        int
			}
			if answer.Header.Get("Content-Type") != "application/problem+json" || json.Unmarshal(body, &p) != nil || p.Status != c.want || p.Title == "" || p.Detail == "" {
				t.Errorf("%s %s", answer.Header, body)
			}
			if fence.ResponseError(answer) != nil {
				t.Error("it is taken for a stale one")
			}
		})
	}
}

// A fence is for what the request writes to, and for nothing else.
func TestAFenceOfAnotherResourceIsRefused(t *testing.T) {
	path := func(r *http.Request) string { return strings.TrimPrefix(r.URL.Path, "/") }
	s := httptest.NewServer(fence.Handler(new(fence.Memory), path, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	defer s.Close()
	locks, err := pawl.New(memlock.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close(t.Context())
	err = locks.Mutex("account").Do(t.Context(), func(ctx context.Context) error {
		return locks.Semaphore("connections", 2).Do(ctx, func(ctx context.Context) error {
			for resource, want := range map[string]int{"": http.StatusBadRequest, "account": http.StatusOK} {
				client := &http.Client{Transport: &fence.Transport{Resource: resource}}
				r, err := http.NewRequestWithContext(ctx, http.MethodPut, s.URL+"/account", nil)
				if err != nil {
					return err
				}
				answer, err := client.Do(r)
				if err != nil {
					return err
				}
				if answer.Body.Close(); answer.StatusCode != want {
					t.Errorf("%q: %s", resource, answer.Status)
				}
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// late is a guard whose commit fails when the handler has answered.
type late struct{}

func (late) Guard(ctx context.Context, resource string, f uint64, write func(ctx context.Context) error) error {
	if err := write(ctx); err != nil {
		return err
	}
	return &fence.StaleError{Resource: resource, Fence: f, Highest: f + 1}
}

func TestAnAnswerThatWasRolledBackIsNotGiven(t *testing.T) {
	s := service(t, late{})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(fence.HeaderToken, "1")
	r.Header.Set(fence.HeaderResource, "account")
	if answer, err := http.DefaultClient.Do(r); err == nil {
		defer answer.Body.Close()
		t.Errorf("the client was told %s", answer.Status)
	}
}
