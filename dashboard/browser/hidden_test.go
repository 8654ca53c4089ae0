package browser

import "testing"

// A hidden page closes its stream. When it is visible again, it opens exactly one.
func TestAHiddenPageHasNoStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newBackend(t, nil), nil)
	b := newTab(t, viewSettings{})
	b.addInitScript(`{
		globalThis.streams = [];
		globalThis.EventSource = class extends EventSource {
			constructor(...a) { super(...a); streams.push(this); }
		};
	}`)
	b.visit(w.url, 200)
	b.until("it is live", isLive)
	open := `streams.filter(s => s.readyState != EventSource.CLOSED).length`
	hide := func(hidden string) int {
		return js[int](b, `(() => {
			Object.defineProperty(document, "hidden", { value: `+hidden+`, configurable: true });
			document.dispatchEvent(new Event("visibilitychange"));
			return `+open+`;
		})()`)
	}
	if n := hide("true"); n != 0 {
		t.Errorf("the hidden page has %d streams", n)
	}
	w.take(mutex("stock:eu", "worker-2", 1502))
	if n := hide("false"); n != 1 {
		t.Errorf("shown again, it has %d streams", n)
	}
	b.until("it shows the lease that began meanwhile", isLive+" && "+rowContains("stock:eu", "worker-2"))
	again := `(() => { dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true })); return ` + open + `; })()`
	if n := js[int](b, again); n != 1 {
		t.Errorf("shown twice, it has %d streams", n)
	}
}

// If a stream is refused, the page opens it again, except while the page is hidden or has
// another stream.
func TestAHiddenPageDoesNotRetry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newBackend(t, nil), nil)
	b := newTab(t, viewSettings{})
	b.addInitScript(`{
		globalThis.tries = 0;
		globalThis.EventSource = class { // every stream is refused at once
			static CLOSED = 2;
			readyState = 2;
			constructor() { tries++; setTimeout(() => this.onerror()); }
			close() {}
		};
		const real = setTimeout, stop = clearTimeout, late = new Map();
		globalThis.pending = late;
		globalThis.setTimeout = (f, ms) => { // later calls are stored
			if (!(ms >= 5000)) return real(f, ms);
			late.set(-1 - late.size, f);
			return -late.size;
		};
		globalThis.clearTimeout = (id) => { if (!late.delete(id)) stop(id); };
	}`)
	b.visit(w.url, 200)
	b.until("it waits to try again", `tries == 1 && pending.size == 1`)
	hide := func(hidden string) {
		js[bool](b, `(() => {
			Object.defineProperty(document, "hidden", { value: `+hidden+`, configurable: true });
			document.dispatchEvent(new Event("visibilitychange"));
			return true;
		})()`)
	}
	hide("true")
	if n := js[int](b, `pending.size`); n != 0 {
		t.Errorf("the hidden page would retry")
	}
	hide("false")
	b.until("it has tried at once, and waits again", `tries == 2 && pending.size == 1`)
}
