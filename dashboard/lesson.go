package dashboard

import (
	"context"
	"crypto/rand"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/pawl-go/pawl/internal/markup"
)

const (
	lessonCookie = "pawl_lesson"
	mostLessons  = 64
	lessonFor    = 30 * time.Minute // after its last step
)

// lessons are the lessons of the visitors, by the values of their cookies.
type lessons struct {
	mu  sync.Mutex // protects all below, and the lessons
	all map[string]*attended
}

// An attended lesson has a visitor.
type attended struct {
	*lesson
	used time.Time
}

// openLocked returns the lesson of a visitor. If it has to begin a new one, it deletes
// the lessons that are too old, and the oldest if there are too many.
func (l *lessons) openLocked(id string, now time.Time) *attended {
	a := l.all[id]
	if a == nil {
		for other, x := range l.all {
			if now.Sub(x.used) > lessonFor {
				delete(l.all, other)
			}
		}
		if len(l.all) >= mostLessons {
			oldest := ""
			for other, x := range l.all {
				if oldest == "" || x.used.Before(l.all[oldest].used) {
					oldest = other
				}
			}
			delete(l.all, oldest)
		}
		if l.all == nil {
			l.all = map[string]*attended{}
		}
		a = &attended{lesson: newLesson(now)}
		l.all[id] = a
	}
	a.used = now
	return a
}

// lessonPage shows the lesson of a visitor, or the beginning of one.
func (h *Handler) lessonPage(w http.ResponseWriter, r *http.Request) {
	id := ""
	if c, err := r.Cookie(lessonCookie); err == nil {
		id = c.Value
	}
	h.write(w, r, page{title: "Fencing", at: "fencing", body: h.lessons.show(id)})
}

// show renders a lesson. It does not write the answer under the lock, because then a slow
// visitor would keep the others waiting.
func (l *lessons) show(id string) []markup.Part {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.all[id]; a != nil {
		return lessonBody(a.lesson)
	}
	return lessonBody(newLesson(time.Now()))
}

func (h *Handler) lessonStep(w http.ResponseWriter, r *http.Request) {
	id := ""
	if c, err := r.Cookie(lessonCookie); err == nil && len(c.Value) == len(rand.Text()) {
		id = c.Value
	} else {
		id = rand.Text()
		http.SetCookie(w, &http.Cookie{
			Name: lessonCookie, Value: id, MaxAge: int(lessonFor.Seconds()), HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
		})
	}
	step, err := strconv.Atoi(r.PostFormValue("step"))
	if err != nil {
		h.refuse(w, r, http.StatusBadRequest, "The step is no number.")
		return
	}
	h.lessons.mu.Lock()
	defer h.lessons.mu.Unlock()
	if step < 0 {
		delete(h.lessons.all, id)
	} else if err := h.lessons.openLocked(id, time.Now()).take(r.Context(), step); err != nil {
		h.refuse(w, r, http.StatusInternalServerError, bare(err))
		return
	}
	http.Redirect(w, r, "fencing#next", http.StatusSeeOther)
}

func lessonBody(l *lesson) []markup.Part {
	body := []markup.Part{
		text("h1", "Why a lock needs a fence"),
		text("p", "Two workers, one lock, and a store that checks. It runs for real, in the memory of this process and for you alone; only the time is yours to move."),
		markup.El("div", class("stage"),
			actor(l.a.name, l.a.state, l.a.fence, "its fence"), lockActor(l), actor(l.b.name, l.b.state, l.b.fence, "its fence"), storeActor(l)),
	}
	var lines []markup.Part
	for _, line := range l.log {
		lines = append(lines, text("li", line.words, markup.If(line.refused, "class", "refused")))
	}
	if len(lines) > 0 {
		body = append(body, markup.El("ol", append(lines, class("steps"))...))
	}
	return append(body, nextStep(len(l.log)))
}

func nextStep(n int) markup.HTML {
	form := func(step int, words, style string) markup.HTML {
		return markup.El("form", markup.Attr("method", "post"), markup.Link("action", "fencing"),
			markup.El("input", markup.Attr("type", "hidden"), markup.Attr("name", "step"), markup.Int("value", int64(step))),
			text("button", words, markup.Attr("type", "submit"), markup.If(style != "", "class", style)))
	}
	if n < len(lessonSteps) {
		step := lessonSteps[n]
		again := markup.HTML{}
		if n > 0 {
			again = form(-1, "Begin again", "")
		}
		return markup.El("section", class("card next"), markup.Attr("id", "next"), markup.Attr("aria-label", "Next step"),
			text("p", step.why), markup.El("div", class("buttons"), form(n, step.button, "primary"), again))
	}
	return markup.El("section", class("card next"), markup.Attr("id", "next"), markup.Attr("aria-label", "The end"),
		text("p", "The invoice of B is still there. The lock alone could not have saved it: A had looked at the lock before it was paused, and wrote after. "+
			"The store could, for the fence of B is greater than that of A, and always will be."),
		text("p", "So send lease.Fence() along with each write, and have the storage refuse a lower one: the package fence does that for SQL, Redis, MongoDB, S3 and HTTP."),
		form(-1, "Begin again", "primary"))
}

func actor(name, state string, number uint64, what string) markup.HTML {
	has := text("p", "no fence yet", class("more"))
	if number > 0 {
		has = markup.El("p", text("span", what+" ", class("more")), fenceOf(number))
	}
	return markup.El("section", class("card actor"), text("h2", name), text("p", state), has)
}

func lockActor(l *lesson) markup.HTML {
	state := "free"
	if e, err := l.locks.Inspect(context.Background(), lessonName); err == nil && len(e.Holders) > 0 {
		state = "held by " + e.Holders[0].Owner.Client
	}
	return markup.El("section", class("card actor"), text("h2", "the lock"), text("p", state), text("p", lessonName, class("more")))
}

func storeActor(l *lesson) markup.HTML {
	return markup.El("section", class("card actor"), text("h2", "the store"), text("p", l.store), text("p", "refuses a lower fence than it has seen", class("more")))
}
