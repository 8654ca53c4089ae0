package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/dashboard"
)

// attacker is a host name of an attacker that resolves to this machine.
const attacker = "rebinding.attacker.test"

// A page of another site has a name that resolves to the dashboard. To the browser, it
// has the same origin as the dashboard. The dashboard refuses to answer requests for that
// name.
func TestARebindingPageReadsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newBackend(t, nil), &dashboard.Options{AllowBreak: true})
	w.take(mutex("secret-plan", "web-1", 4127))
	attackerURL := strings.Replace(w.url, "127.0.0.1", attacker, 1)
	b := newTab(t, viewSettings{})
	b.allowFault("status of 421", "The Cross-Origin-Opener-Policy header has been ignored")
	for _, path := range []string{"", "name?name=secret-plan", "events?view=list", "health", "metrics", "style.css"} {
		b.visit(attackerURL+path, http.StatusMisdirectedRequest)
		if text := b.text(); !strings.Contains(text, "does not answer for this host") {
			t.Errorf("%s shows %s, want that it does not answer for this host", path, text)
		}
	}
}

// A page of another site, open in the same browser as the dashboard, can send requests to
// the dashboard. It reads none of the answers, shows no frame of it, and changes nothing.
func TestAnotherSiteReadsAndChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newBackend(t, nil), &dashboard.Options{AllowBreak: true})
	g := w.take(mutex("secret-plan", "web-1", 4127))
	evil := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(rw, `<!doctype html><title>evil</title>
			<iframe id="frame" src="%[1]s"></iframe>
			<iframe name="sink"></iframe>
			<form id="form" target="sink" method="post" action="%[1]sbreak">
				<input name="name" value="secret-plan"><input name="typed" value="secret-plan"><input name="fence" value="%[2]d"></form>
			<script>
				const all = [];
				const ask = (how, o) => all.push(fetch("%[1]s" + how, o).then(r => r.text()).then(s => s.length, () => 0));
				ask("", {}); ask("events?view=list", {}); ask("", {credentials: "include"});
				ask("break", {method: "POST", mode: "no-cors", body: new URLSearchParams({name: "secret-plan", typed: "secret-plan", fence: "%[2]d"})});
				document.getElementById("form").submit();
				const stream = new EventSource("%[1]sevents?view=list");
				all.push(new Promise(done => { stream.onmessage = () => done(1); stream.onerror = () => { stream.close(); done(0) } }));
				const asked = Promise.all(all);
			</script>`, w.url, g.Fence)
	}))
	defer evil.Close()
	attackerURL := strings.Replace(evil.URL, "127.0.0.1", attacker, 1)
	b := newTab(t, viewSettings{})
	b.allowFault("") // the browser reports many errors here
	b.visit(attackerURL, http.StatusOK)
	if got := js[[]int](b, `asked`); strings.Trim(fmt.Sprint(got), "[0 ]") != "" {
		t.Errorf("it read answers of the lengths %v, want none", got)
	}
	b.until("the form was answered", `frames.length > 0 && performance.getEntriesByType("resource").length >= 4`)
	if h := w.holders("secret-plan"); len(h) != 1 || h[0].Fence != g.Fence {
		t.Errorf("the lease was broken: %v", h)
	}
}
