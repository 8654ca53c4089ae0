package dashboard_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
)

func TestTheListShowsWhoHoldsAndWhoWaits(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		time.Sleep(2900 * time.Millisecond) // the next scan begins 100 ms later
		g := s.take(t, claim("report:nightly", 1))
		for i := range 5 {
			s.queue(t, claim("report:nightly", 2+i))
		}
		reader := claim("catalog", 9)
		reader.Weight = 1
		s.take(t, reader)
		permit := claim("gpu", 9)
		permit.Weight, permit.Limit = 2, 4
		s.take(t, permit)
		time.Sleep(6 * time.Second)
		page := s.get(t, "")
		wantTexts(t, page, `<a href="name?name=report%3Anightly"><bdi>report:nightly</bdi></a>`, fmt.Sprintf(">%d</code>", g.Fence),
			"exclusive</span>", "shared</span>", "2 of 4</span>", "<bdi>job</bdi>=<bdi>nightly</bdi>", "<bdi>host:1</bdi>",
			">6s</span>", `<progress class="left" aria-label="time left" max="29900" value="24000"`, ">24s</span>",
			"<bdi>host:2</bdi>", "and 2 more", "<b>3</b> names", "<b>5</b> waiters", "Changes are pushed")
		wantNoTexts(t, page, "host:5", "overdue</span></td>")
		time.Sleep(11 * time.Second)
		wantTexts(t, s.get(t, ""), `<progress class="left late"`, `<tr role="row" data-key="report%3Anightly" class="late">`, "<b>3</b> overdue")
	})
}

// namesInOrder returns the order of the names on a page.
func namesInOrder(page string) (names []string) {
	for _, m := range regexp.MustCompile(`<tr role="row" data-key="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		name, _ := url.QueryUnescape(m[1])
		names = append(names, name)
	}
	return names
}

func TestTheListIsSearchedSortedAndPaged(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		for i := range 60 {
			s.take(t, claim(fmt.Sprintf("n:%02d", i), i))
		}
		s.take(t, claim("other", 1))
		s.queue(t, claim("n:07", 99))
		time.Sleep(6 * time.Second)
		first := s.get(t, "")
		if names := namesInOrder(first); len(names) != 50 || names[0] != "n:07" || names[1] != "n:00" {
			t.Errorf("the page has %d names: %q", len(names), names)
		}
		wantTexts(t, first, "1–50 of 61", `href="./?offset=50" rel="next"`, `<span class="off">← Previous</span>`)
		wantTexts(t, s.get(t, "?offset=50"), "51–61 of 61", `href="./" rel="prev"`)
		wantTexts(t, s.get(t, "?offset=5000"), "51–61 of 61")
		if names := namesInOrder(s.get(t, "?prefix=oth")); !slices.Equal(names, []string{"other"}) {
			t.Errorf("searched, it has %q", names)
		}
		byName := s.get(t, "?sort=name&reversed=1")
		if names := namesInOrder(byName); names[0] != "other" || names[1] != "n:59" {
			t.Errorf("sorted, it begins with %q", names[:2])
		}
		wantTexts(t, byName, `aria-sort="descending"><a href="./?sort=name">`, `data-live="events?reversed=1&#38;sort=name&#38;view=list"`, "What needs attention first")
		for _, odd := range []string{"?sort=nonsense", "?offset=-7", "?offset=x", "?sort=" + strings.Repeat("x", 2000)} {
			if names := namesInOrder(s.get(t, odd)); len(names) != 50 || names[0] != "n:07" {
				t.Errorf("%.20s begins with %q", odd, names[:1])
			}
		}
		wantTexts(t, s.get(t, "?prefix=nothing"), "No name in use begins with this.", `href="name?name=nothing"`)
	})
}

func TestThePageOfAnEmptyBackendShowsNoName(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		wantTexts(t, newSite(t, nil).get(t, ""), "No name is held or waited for.", "<b>0</b> names")
	})
}

var attacks = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'><svg/onload=alert(1)>`, `</title><script>alert(1)</script>`,
	"` onmouseover=alert(1) `", `javascript:alert(1)`, `" autofocus onfocus=alert(1) x="`, `</bdi></table><iframe src=//x>`,
	"\u202eright to left\u2066", "&lt;b&gt;", strings.Repeat("א", 127),
}

// Text of other processes stays text, on every page and in every stream.
func TestTextOfOthersStaysText(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		for i, attack := range attacks {
			c, w := claim(attack, i), claim(attack, i)
			c.Owner = driver.Owner{Client: attack, Host: attack, PID: i, Labels: map[string]string{attack: attack}}
			c.Value = []byte(attack)
			w.Token, w.Owner = driver.NewToken(), c.Owner
			s.take(t, c)
			s.queue(t, w)
		}
		first := s.get(t, "")
		wantTexts(t, first, `\u202eright to left\u2066`, "&#60;script&#62;alert(1)&#60;/script&#62;")
		wantNoTexts(t, first, "\u202e", "\u2066")
		wantOnlyOurScripts(t, first)
		for _, attack := range attacks {
			wantOnlyOurScripts(t, s.get(t, "name?name="+url.QueryEscape(attack)))
			wantOnlyOurScripts(t, s.get(t, "?prefix="+url.QueryEscape(attack)))
		}
		live := s.open(t.Context(), "events?view=list")
		time.Sleep(time.Second)
		messages := strings.Split(strings.TrimSpace(live.take()), "\n\n")
		var sent struct{ Parts map[string]string } // of each part, the last message counts
		for _, message := range messages {
			if err := json.Unmarshal([]byte(strings.TrimPrefix(message, "data: ")), &sent); err != nil || len(sent.Parts) == 0 {
				t.Fatalf("the message %s has the parts %v: %v", message, sent.Parts, err)
			}
		}
		for _, part := range sent.Parts {
			wantOnlyOurScripts(t, part)
		}
	})
}

var (
	markupPattern  = regexp.MustCompile(`^(<!doctype html>|[^<>]|</?[a-z0-9]+(?: [a-zA-Z-]+="[^"<>]*"| defer)*>)*$`)
	handlerPattern = regexp.MustCompile(`<[^>]* (?:on[a-z]+|style|srcdoc|autofocus)=`)
	ourScripts     = strings.NewReplacer(`<script src="theme.js"></script>`, "", `<script src="app.js" defer></script>`, "")
)

// wantOnlyOurScripts checks that markup is complete and runs only our two scripts.
func wantOnlyOurScripts(t *testing.T, page string) {
	t.Helper()
	page = ourScripts.Replace(page)
	quoted := regexp.MustCompile(`="[^"]*"`).ReplaceAllString(page, `=""`)
	switch {
	case !markupPattern.MatchString(page):
		t.Errorf("the markup is not complete:\n%s", page)
	case handlerPattern.MatchString(quoted), strings.Contains(page, `href="javascript`):
		t.Errorf("this runs something:\n%s", page)
	}
	wantNoTexts(t, page, "<script", "<img", "<svg/", "<iframe", "<b>=")
}
