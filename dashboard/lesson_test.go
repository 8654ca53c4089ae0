package dashboard_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/internal/bubble"
)

// step takes a step of the lesson, and returns the page to which it leads.
func (s *site) step(t *testing.T, n int, cookie *http.Cookie) (string, *http.Cookie) {
	t.Helper()
	carry := func(r *http.Request) {
		if cookie != nil {
			r.AddCookie(cookie)
		}
	}
	w := s.request(t, "POST", "fencing", url.Values{"step": {strconv.Itoa(n)}}, carry)
	if w.Code != http.StatusSeeOther {
		t.Fatalf("step %d was answered with %d", n, w.Code)
	}
	for _, c := range w.Result().Cookies() {
		cookie = c
	}
	return s.request(t, "GET", "fencing", nil, carry).Body.String(), cookie
}

func TestTheLessonOfFencing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		wants(t, s.get(t, "fencing"), "Why a lock needs a fence", "A takes the lock", "no fence yet")
		page, cookie := s.step(t, 0, nil)
		wants(t, page, "worker A is granted invoice:42 with fence", "held by worker A")
		again, _ := s.step(t, 0, cookie)
		if again != page {
			t.Error("a step that is sent twice is taken twice")
		}
		for n := 1; n < 7; n++ {
			page, _ = s.step(t, n, cookie)
		}
		wants(t, page, "The store refuses what worker A writes", "the invoice, by worker B", "30s later invoice:42 has 0 holders")
		fences := regexp.MustCompile(`granted invoice:42 with fence (\d+)`).FindAllStringSubmatch(page, -1)
		if len(fences) != 2 || fences[0][1] >= fences[1][1] {
			t.Errorf("the fences are %q", fences)
		}
		page, _ = s.step(t, 7, cookie)
		wants(t, page, "knows that it lost the lock", "The invoice of B is still there.", "Begin again")
		page, _ = s.step(t, -1, cookie)
		wants(t, page, "A takes the lock", "no fence yet")
		if w := s.request(t, "POST", "fencing", url.Values{"step": {"x"}}, nil); w.Code != http.StatusBadRequest {
			t.Errorf("no number was answered with %d", w.Code)
		}
	})
}

func TestEachVisitorHasALessonOfTheirOwn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		_, one := s.step(t, 0, nil)
		_, two := s.step(t, 0, nil)
		s.step(t, 1, one)
		page, _ := s.step(t, 5, two) // the lesson of two is at another step
		lacks(t, page, "a draft with fence")
		for i := range 200 { // new lessons replace the oldest
			time.Sleep(time.Second)
			if _, c := s.step(t, 0, nil); c == nil {
				t.Fatal(i)
			}
		}
		page, _ = s.step(t, 2, one)
		lacks(t, page, "a draft with fence")
		time.Sleep(time.Hour)
		wants(t, s.request(t, "GET", "fencing", nil, with(two)).Body.String(), fmt.Sprintf(`value="%d"`, 0))
	})
}

// A stuck is a browser that reads nothing of its answer until it is closed.
type stuck struct {
	*httptest.ResponseRecorder
	until chan struct{}
}

func (s stuck) Write(b []byte) (int, error) {
	<-s.until
	return s.ResponseRecorder.Write(b)
}

func (s stuck) WriteString(b string) (int, error) { return s.Write([]byte(b)) }

func TestASlowVisitorKeepsNobodyFromTheLesson(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		w := stuck{httptest.NewRecorder(), make(chan struct{})}
		defer close(w.until)
		go s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/fencing", nil))
		synctest.Wait() // the handler is writing the answer
		seen := make(chan string, 1)
		go func() {
			other := httptest.NewRecorder()
			s.ServeHTTP(other, httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/fencing", nil))
			seen <- other.Body.String()
		}()
		select {
		case page := <-seen:
			wants(t, page, "Why a lock needs a fence")
		case <-time.After(time.Minute):
			t.Error("another visitor waits for it")
		}
	})
}
