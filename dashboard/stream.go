package dashboard

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/overview"
)

// quietInterval is the time without updates after which a stream sends a comment, so that
// no proxy closes it as dead.
const quietInterval = 15 * time.Second

// pageViewOf returns the pageView of a stream, or nil.
func (h *Handler) pageViewOf(q url.Values) pageView {
	switch name := q.Get("name"); {
	case q.Get("view") == "list":
		return listView(listQuery(q))
	case q.Get("view") == "name" && driver.ValidateName(name) == nil:
		return h.nameView(name)
	}
	return nil
}

// serveEvents sends the parts of a page that change, until the browser leaves or the
// dashboard closes. It sends markup, in which names are escaped, as on the page.
func (h *Handler) serveEvents(w http.ResponseWriter, r *http.Request) {
	render := h.pageViewOf(r.URL.Query())
	if render == nil {
		http.Error(w, "pawl: there is no such stream", http.StatusBadRequest)
		return
	}
	select {
	case h.streams <- struct{}{}:
		defer func() { <-h.streams }()
	default:
		w.Header().Set("Retry-After", "30")
		http.Error(w, "pawl: too many pages are open", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // otherwise nginx buffers it
	if r.Method == http.MethodHead {
		return
	}
	h.sendUpdates(w, r, render)
}

// An update is one message of a stream.
type update struct {
	Now   int64             `json:"now"`             // on this process's clock, in milliseconds
	Stale bool              `json:"stale,omitempty"` // the backend does not answer, so the parts are old
	Parts map[string]string `json:"parts"`
}

func (h *Handler) sendUpdates(w http.ResponseWriter, r *http.Request, render pageView) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // the stream reads nothing
	viewer := h.overview.Join()
	defer viewer.Leave()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)()
	sent, lastWrite := map[string]string{}, time.Now()
	for v := h.overview.View(); v != nil; v = h.awaitView(ctx, viewer, v, control, w, r) {
		if !h.auth.stillAllowed(r) {
			return // its session is over
		}
		if v.ScannedAt.IsZero() && v.Err == nil {
			continue // there is no view yet, and the page already says so
		}
		m := renderContext{view: v, now: time.Now(), stream: true}
		parts, names := render(m)
		viewer.Show(names)
		changed := map[string]string{}
		for id, html := range parts {
			s := html.String()
			if last, wasSent := sent[id]; !wasSent || last != s { // first send empty parts, too: the page may be older
				changed[id], sent[id] = s, s
			}
		}
		switch {
		case len(changed) > 0:
		case m.now.Sub(lastWrite) < quietInterval:
			continue
		default:
			changed = nil
		}
		if lastWrite = m.now; writeUpdate(control, w, update{m.now.UnixMilli(), v.Err != nil && !v.Unsupported(), changed}) != nil {
			return
		}
	}
}

// awaitView returns the next view, or nil when the stream is over.
func (h *Handler) awaitView(
	ctx context.Context, viewer *overview.Viewer, seen *overview.View, control *http.ResponseController, w http.ResponseWriter, r *http.Request,
) *overview.View {
	for {
		quiet, cancel := context.WithTimeout(ctx, quietInterval)
		v, err := viewer.Next(quiet, seen)
		cancel()
		if err == nil {
			return v
		}
		if ctx.Err() != nil || !h.auth.stillAllowed(r) || writeUpdate(control, w, update{}) != nil {
			return nil
		}
	}
}

// writeUpdate sends the parts that have changed, or a comment if there are none.
func writeUpdate(control *http.ResponseController, w http.ResponseWriter, u update) error {
	message := []byte(": quiet\n\n")
	if u.Parts != nil {
		body, _ := json.Marshal(u) // it has nothing that can fail
		message = append(append([]byte("data: "), body...), "\n\n"...)
	}
	_ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) // fails for a writer without deadlines
	if _, err := w.Write(message); err != nil {
		return err
	}
	return control.Flush()
}
