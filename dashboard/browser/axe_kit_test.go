package browser

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/chromedp/chromedp"
)

//go:embed testdata/axe/axe.min.js
var axe string

// A violation is a broken rule that axe reports.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct {
		HTML           string
		FailureSummary string
	}
}

// wantAccessible fails the test for each violation that axe calls serious or critical.
func (b *tab) wantAccessible(where string) {
	b.t.Helper()
	js[bool](b, axe+"\n;true")
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]violation](
		`axe.run(document, {preload: false, resultTypes: ["violations"]}).then(r => r.violations)`, chromedp.EvalAwaitPromise))
	noError(b.t, err)
	for _, v := range found {
		var at strings.Builder
		for _, n := range v.Nodes {
			fmt.Fprintf(&at, "\n\t%.200s\n\t%s", n.HTML, strings.ReplaceAll(n.FailureSummary, "\n", "\n\t"))
		}
		if v.Impact == "serious" || v.Impact == "critical" {
			b.t.Errorf("%s: %s (%s): %s%s", where, v.ID, v.Impact, v.Help, &at)
		} else {
			b.t.Logf("%s: %s (%s): %s%s", where, v.ID, v.Impact, v.Help, &at)
		}
	}
}
