package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/cmd/pawl/prove/check"
	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// write returns the page of a history.
func write(t testing.TB, m *testHistory) string {
	t.Helper()
	var b bytes.Buffer
	noError(t, Write(&b, m.history(), m.v))
	return b.String()
}

// words returns the text of a page, with plain blanks, and without data and script.
func words(page string) string {
	page, _, _ = strings.Cut(page, `<script type="application/json"`)
	page = regexp.MustCompile(`(?s)<style>.*?</style>`).ReplaceAllString(page, "")
	page = regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, " ")
	page = strings.ReplaceAll(html.UnescapeString(page), narrow, " ")
	return strings.Join(strings.Fields(page), " ")
}

func wantWords(t *testing.T, page string, want ...string) {
	t.Helper()
	got := words(page)
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("the page does not contain %q:\n%.2000s", w, got)
		}
	}
}

func TestVerdicts(t *testing.T) {
	small := plan{leases: 500, seconds: 20, faults: 6}
	t.Run("held", func(t *testing.T) {
		m := makeHistory(small)
		m.v.Numbers.Leases, m.v.Numbers.FaultsByKind = 302_114, map[string]int{history.Stop: 1000, history.Kill: 240}
		wantWords(t, write(t, m), "Held: 302 114 leases, 1 240 faults, no violation.", "16 rules checked: 15 held, 1 had nothing to look at.",
			"Redis 8.4 at 127.0.0.1:6379", "Seed 42", "pawl prove --url redis://127.0.0.1:6379 --for 5m --seed 42", "pawl prove --check FILE")
	})
	t.Run("failed", func(t *testing.T) {
		m := makeHistory(small)
		m.v.Violations = []check.Violation{
			{Rule: check.Idle, Name: "m1", Text: "It waited for nothing.", From: 5e9, To: 6e9},
			{Rule: check.Overlap, Name: "m2", Text: "Both had it.", From: 192_400_000_000, To: 192_400_900_000, Claims: []int64{3, 4}},
		}
		m.v.Count = map[string]int{check.Idle: 1, check.Overlap: 1}
		page := write(t, m)
		wantWords(t, page, "FAILED: two holders of “m2” at 3 min 12.4 s Both had it. Show violation 2 1 more violation",
			"“m1” was free, and its waiters kept waiting at 5.0 s", "3 min 12.400 s for 900 µs, claims 3 and 4", "16 rules checked: 2 broken, 13 held")
		if !strings.Contains(page, `href="#v2" class="jump">Show violation 2<`) && !strings.Contains(page, `class="jump" href="#v2">Show violation 2<`) {
			t.Error("the headline has no link to its violation")
		}
	})
	t.Run("weaknesses", func(t *testing.T) {
		m := makeHistory(small)
		m.v.Weaknesses = []string{"No worker was ever stopped.", "No lease was lost."}
		wantWords(t, write(t, m), "Proves nothing: no worker was ever stopped.", "No lease was lost.")
	})
	t.Run("planted", func(t *testing.T) {
		m := makeHistory(small)
		m.lines[0].Run.Planted = "fence-falls"
		wantWords(t, write(t, m), "This run has a planted bug, “fence-falls”. The checker did not find it.")
	})
	t.Run("excused", func(t *testing.T) {
		m := makeHistory(small)
		m.lines[0].Run.Forgets, m.v.Announced = true, 3
		wantWords(t, write(t, m), "The checker excused 3 overlaps:")
	})
	t.Run("a lock without promises", func(t *testing.T) {
		m := makeHistory(small)
		m.lines[0].Run.Fenced, m.lines[0].Run.Ordered, m.lines[0].Run.Lock = false, false, "redsync"
		wantWords(t, write(t, m), "pawl prove of redsync on Redis 8.4", "not checked: this lock has no fences", "not checked: this lock promises no order",
			"5 not promised by this lock")
	})
}

func TestAHistoryWithoutClaims(t *testing.T) {
	m := &testHistory{v: &check.Verdict{Weaknesses: []string{"No lease was granted."}}}
	m.lines = []history.Line{{Run: &history.Run{Format: history.Format}}, {End: &history.End{}}}
	wantWords(t, write(t, m), "Proves nothing: no lease was granted.")
	m.lines = nil
	wantWords(t, write(t, m), "Proves nothing: no lease was granted.")
}

func TestTheReportCountsOmittedViolations(t *testing.T) {
	m := makeHistory(plan{leases: 500, seconds: 20})
	for i := range 1000 {
		m.v.Violations = append(m.v.Violations, check.Violation{Rule: check.FenceFalls, Name: "a", Text: fmt.Sprint("number ", i), From: int64(i)})
	}
	m.v.Count = map[string]int{check.FenceFalls: 1_234}
	wantWords(t, write(t, m), "1 233 more violations", "Broken 1 234 times:", "995 more", "The checker kept 1 000 of these 1 234.",
		"number 999")
}

// The page has no link to another site, and can only run its own script.
func TestThePageUsesNoOtherSite(t *testing.T) {
	page := write(t, makeHistory(plan{leases: 500, seconds: 20, faults: 5}))
	for _, link := range regexp.MustCompile(`(?i)\b(?:href|src|action|srcset|data|poster)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if !strings.HasPrefix(link[1], "#") {
			t.Errorf("the page has a link to %q", link[1])
		}
	}
	code := style() + script()
	for _, word := range []string{"url(", "@import", "http:", "https:", "//fonts", "fetch(", "XMLHttpRequest", "import(", "innerHTML", "eval(", "</", "<!--"} {
		if strings.Contains(code, word) {
			t.Errorf("the style or the script has %q", word)
		}
	}
	if n := strings.Count(page, "<script"); n != 2 {
		t.Errorf("the page has %d scripts, want 2: its data and its script", n)
	}
	got := html.UnescapeString(regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)[1])
	hash := func(tag string) string {
		_, text, _ := strings.Cut(page, "<"+tag+">")
		text, _, _ = strings.Cut(text, "</"+tag+">")
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	want := "default-src 'none'; script-src " + hash("script") + "; style-src " + hash("style") + "; base-uri 'none'; form-action 'none'"
	if got != want {
		t.Errorf("the policy is\n%s, want\n%s", got, want)
	}
}

func TestHostileTextsAreEscaped(t *testing.T) {
	const evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u202e\u2028\x00"
	m := makeHistory(plan{leases: 300, seconds: 20, faults: 5, names: []history.Name{{Name: evil, Kind: history.Mutex + evil, Limit: 1}}})
	r := m.lines[0].Run
	r.Version, r.Begun, r.Command, r.Backend, r.Lock, r.Planted, r.Faults = evil, evil, evil, evil, evil, evil, []string{evil}
	m.v.Violations = []check.Violation{{Rule: check.Overlap, Name: evil, Text: evil, From: 1, Claims: []int64{1}}, {Rule: check.RunFailed, Text: evil}}
	m.v.Count = map[string]int{check.Overlap: 1, check.RunFailed: 1}
	m.v.Weaknesses = []string{evil}
	m.v.Numbers.FaultsByKind = map[string]int{evil: 3}
	for _, l := range m.lines {
		switch {
		case l.Claim != nil:
			l.Claim.Error, l.Claim.Why, l.Claim.Mode, l.Claim.How = evil, evil, evil, evil
		case l.Fault != nil:
			l.Fault.Kind = evil
		case l.Phase != nil:
			l.Phase.Phase = evil
		case l.Worker != nil:
			l.Worker.End = evil
		}
	}
	page := write(t, m)
	for _, bad := range []string{"<script>alert", "</script><script>a", "<img", "\u202e", "\u2028", "\x00"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if !strings.Contains(page, `\u202e`) {
		t.Error("the page does not show U+202E")
	}
	if n := strings.Count(page, "</script>"); n != 2 {
		t.Errorf("the page has </script> %d times, want 2", n)
	}
}

func TestTheReportOfALongRunIsSmall(t *testing.T) {
	m := makeHistory(plan{leases: 18_000, faults: 30})
	m.plantOverlap("a", .4)
	var b bytes.Buffer
	noError(t, Write(&b, m.repeated(300_000), m.v))
	page := b.String()
	if len(page) > 15<<20 {
		t.Errorf("the page has %d bytes, want at most %d", len(page), 15<<20)
	}
	wantWords(t, page, "The timeline draws 60 000 of ", "A grey line below the phases")
}
