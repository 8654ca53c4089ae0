package browser

import (
	"net/http"
	"strings"
	"testing"
)

// A reader goes through the lesson of fencing with its one button, also without scripts.
// At the end of the lesson the late write is refused.
func TestTheLessonIsWalkedThrough(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newBackend(t, nil), nil)
	for _, l := range []look{{}, {noScripts: true}} {
		b := newTab(t, l)
		b.visit(w.url+"fencing", http.StatusOK)
		const ahead = `#next form:has(input[name=step]:not([value="-1"])) button`
		steps := 0
		for ; js[bool](b, `document.querySelector(`+quote(ahead)+`) != null`); steps++ {
			if steps == 20 {
				t.Fatalf("it has no end:\n%s", b.text())
			}
			b.follow(ahead)
		}
		if n := js[int](b, `document.querySelectorAll(".steps > li").length`); steps < 4 || n != steps {
			t.Errorf("%d steps have %d lines:\n%s", steps, n, b.text())
		}
		if said := js[string](b, `document.querySelector(".steps .refused").innerText`); !strings.Contains(said, "refuse") {
			t.Errorf("what is refused reads %q", said)
		}
		if !l.noScripts {
			b.accessible("the end of the lesson")
		}
	}
}
