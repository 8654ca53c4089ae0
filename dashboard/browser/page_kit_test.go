package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/pawl-go/pawl/internal/basictest"
)

// Functions that all tests share.
var noError = basictest.NoError

func must[T any](v T, err error) func(basictest.TB) T { return basictest.Must(v, err) }

// lines is the text of a log.
type lines = basictest.Lines

// viewSettings are the settings with which the browser shows a page.
type viewSettings struct {
	dark          bool
	phone         bool
	noScripts     bool
	clockOffset   time.Duration // of the browser
	width, height int64         // default: 1280 x 900; a phone has its own
	scale         float64       // default 1
}

// A tab shows one page at a time, with a profile of its own. It records the errors of the
// pages, and they fail the test at its end.
type tab struct {
	t   testing.TB
	ctx context.Context

	mu      sync.Mutex // protects all below
	faults  []string
	allowed []string
}

// open opens an address.
func open(t testing.TB, url string, l viewSettings) *tab {
	t.Helper()
	b := newTab(t, l)
	b.do(chromedp.Navigate(url))
	return b
}

// newTab returns an empty tab.
func newTab(t testing.TB, l viewSettings) *tab {
	t.Helper()
	whole := must(chromium())(t)
	b := &tab{t: t}
	ctx, cancel := chromedp.NewContext(whole, chromedp.WithNewBrowserContext(), chromedp.WithListener(b.recordError))
	b.ctx = ctx
	t.Cleanup(func() {
		cancel()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, f := range b.faults {
			t.Errorf("the page: %s", f)
		}
	})
	noError(t, chromedp.Do(ctx)) // the tab ends with the ctx that opens it
	b.emulate(l)
	return b
}

// emulate applies settings to this page and all later ones.
func (b *tab) emulate(l viewSettings) {
	b.t.Helper()
	theme := "light"
	if l.dark {
		theme = "dark"
	}
	b.do(func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
		})
		return chromedp.Void{}, err
	})
	if l.scale == 0 {
		l.scale = 1
	}
	switch {
	case l.phone:
		b.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateScale(l.scale), chromedp.EmulateMobile, chromedp.EmulateTouch))
	case l.width == 0:
		l.width, l.height = 1280, 900
		fallthrough
	default:
		b.do(chromedp.EmulateViewport(l.width, l.height, chromedp.EmulateScale(l.scale)))
	}
	if l.noScripts {
		b.do(func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
			_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
			return chromedp.Void{}, err
		})
	}
	if l.clockOffset != 0 {
		b.addInitScript(fmt.Sprintf(`{
			const Real = Date, off = %d;
			globalThis.Date = class extends Real {
				constructor(...a) { a.length ? super(...a) : super(Real.now() + off); }
				static now() { return Real.now() + off; }
			};
		}`, l.clockOffset.Milliseconds()))
	}
}

// addInitScript runs a script in each document, before the scripts of the document.
func (b *tab) addInitScript(script string) {
	b.t.Helper()
	b.do(func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return chromedp.Void{}, err
	})
}

// recordError records an error that the browser reports. It runs in the loop that reads
// from the browser, so it must not send a request to the browser.
func (b *tab) recordError(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		b.recordFault("exception: " + text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" {
			b.recordFault(fmt.Sprintf("console: %s %s", e.Type, values(e.Args)))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			b.recordFault(fmt.Sprintf("%s: %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *page.EventJavascriptDialogOpening:
		b.recordFault("a dialog opened: " + e.Message)
		go func() { // the page is blocked until the dialog has an answer
			_, _ = chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
		}()
	}
}

func values(args []*runtime.RemoteObject) string {
	var all []string
	for _, a := range args {
		all = append(all, a.Description+string(a.Value))
	}
	return strings.Join(all, " ")
}

func (b *tab) recordFault(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.allowed {
		if strings.Contains(what, a) {
			return
		}
	}
	b.faults = append(b.faults, what)
}

// allowFault ignores later reports with these words.
func (b *tab) allowFault(words ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed = append(b.allowed, words...)
}

// do acts on the page.
func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, stepTimeout)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("%v\n%s", err, b.text())
	}
}

// js returns the value of an expression in the page, or the value of its promise.
func js[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, stepTimeout)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits until an expression is true in the page, even while another document is
// loaded. The browser evaluates it again and again.
func (b *tab) until(what, expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, stepTimeout)
	defer cancel()
	wait := `new Promise(done => {
		const begun = performance.now();
		const look = () => {
			let is = false;
			try { is = ` + expression + ` } catch (e) {}
			if (is || performance.now() - begun > 2000) done(!!is); else setTimeout(look, 25);
		};
		look();
	})`
	for ctx.Err() == nil {
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool](wait, chromedp.EvalAwaitPromise))
		if err == nil && is {
			return
		}
	}
	b.t.Fatalf("%s: this did not become true: %s\n%s", what, expression, b.text())
}

// visit opens an address, and checks the status of the answer.
func (b *tab) visit(url string, status int64) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, stepTimeout)
	defer cancel()
	r, err := chromedp.RunResponse(ctx, chromedp.Navigate(url))
	switch {
	case err != nil:
		b.t.Fatalf("%s: %v", url, err)
	case r.Status != status:
		b.t.Fatalf("%s answers with %d, want %d\n%s", url, r.Status, status, b.text())
	}
}

// follow clicks on an element that leads to another page, and waits for that page.
func (b *tab) follow(selector string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, stepTimeout)
	defer cancel()
	for {
		_, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(selector)))
		switch {
		case err == nil:
			return
		case wasReplaced(err) && ctx.Err() == nil:
		default:
			b.t.Fatalf("%s: %v\n%s", selector, err, b.text())
		}
	}
}

// wasReplaced reports whether no click happened, because the page had just drawn the
// element again.
func wasReplaced(err error) bool {
	return strings.Contains(err.Error(), "Could not find node with given id")
}

// click clicks on an element that leads to no other page.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(selector)))
}

// fill types into a field, key by key, as a person does. (SendKeys of chromedp v0.23.0
// reads the attributes of the field while another of its goroutines may write them.)
func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.do(chromedp.Clear(chromedp.CSS(selector)), chromedp.Focus(chromedp.CSS(selector)), chromedp.KeyEvent(text))
}

// text returns the text of the page, or its beginning.
func (b *tab) text() string {
	ctx, cancel := context.WithTimeout(b.ctx, stepTimeout)
	defer cancel()
	s, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
	if err != nil && !errors.Is(err, context.Canceled) {
		return err.Error()
	}
	if len(s) > 3000 {
		s = s[:3000] + "..."
	}
	return s
}

// quote returns a string as a script literal.
func quote(s string) string {
	q, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(q)
}
