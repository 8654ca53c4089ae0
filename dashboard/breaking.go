package dashboard

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/markup"
	"github.com/pawl-go/pawl/internal/overview"
	"github.com/pawl-go/pawl/internal/trust"
	"github.com/pawl-go/pawl/internal/visible"
)

// A breakTarget is a lease to break.
type breakTarget struct {
	name  string
	fence uint64
}

func breakTargetOf(q url.Values) (t breakTarget, err error) {
	t.name = q.Get("name")
	if err := driver.ValidateName(t.name); err != nil {
		return t, err
	}
	t.fence, err = strconv.ParseUint(q.Get("fence"), 10, 64)
	if err != nil {
		return t, &pawl.InvalidError{Argument: "fence", Problem: "is no number", Allowed: "one that the page of the name shows"}
	}
	return t, driver.ValidateFence(t.fence)
}

// breakPage serves the page that breaks a lease: GET shows a form, and POST breaks.
func (h *Handler) breakPage(w http.ResponseWriter, r *http.Request) {
	if !h.options.AllowBreak {
		h.refuse(w, r, http.StatusForbidden, "Leases cannot be broken from here: that was not allowed when this page was started (AllowBreak, or --allow-break of pawl serve).")
		return
	}
	values := r.URL.Query()
	if r.Method == http.MethodPost {
		if err := r.ParseForm(); err != nil {
			h.refuse(w, r, http.StatusBadRequest, "The form cannot be read.")
			return
		}
		values = r.PostForm
	}
	target, err := breakTargetOf(values)
	switch {
	case err != nil:
		h.refuse(w, r, http.StatusBadRequest, visible.Text(errText(err)))
	case r.Method == http.MethodPost:
		h.breakLease(w, r, target)
	default:
		h.breakForm(w, r, target, 0, "")
	}
}

// breakForm shows the lease to break, and asks for its name.
func (h *Handler) breakForm(w http.ResponseWriter, r *http.Request, target breakTarget, status int, complaint string) {
	number := strconv.FormatUint(target.fence, 10)
	lease, alert := text("p", "The name has no lease with this fence now: it may be over already.", class("notice")), markup.HTML{}
	m := h.latestView(r)
	row, err := h.rowOf(m, target.name)
	if err != nil {
		lease = text("p", unreadText(err), class("notice bad"))
	} else {
		for i := range row.Holders {
			if x := &row.Holders[i]; x.Fence == target.fence {
				lease = markup.Join(markup.El("p", markup.Text("Held by "), owner(x.Owner), markup.Text(" for "), m.ago(x.Since),
					markup.Text(", with "), m.until(row.At.Add(x.ExpiresIn)), markup.Text(" left. "+countText(len(row.Waiters), "waiter")+" behind it.")),
					labels(x.Owner))
			}
		}
	}
	if complaint != "" {
		alert = text("p", complaint, class("complaint"), markup.Attr("role", "alert"))
	}
	consequence := "The next one may get the name at once, before Pawl has notified the holder."
	if delay := h.breakDelay(row, target.fence); delay >= 0 {
		closed := "the TTL of the lease"
		if delay > 0 {
			closed = delay.String()
		}
		consequence = "Pawl notifies the holder. The name stays closed for " + closed + ", so that the holder can stop, and then the next one gets it."
	}
	h.writePage(w, r, page{title: "Break " + target.name, status: status, body: []markup.Part{
		markup.El("section", class("card narrow"),
			markup.El("h1", markup.Text("Break the lease of "), isolatedText(target.name)),
			lease,
			markup.El("p", markup.Text("Only the lease with fence "), fenceOf(target.fence), markup.Text(" is broken. A later lease stays as it is.")),
			text("p", consequence),
			text("p", "Pawl cannot notify a holder that is paused or cut off. Only a check of the fence refuses what it writes later."),
			alert,
			markup.El("form", markup.Attr("method", "post"), markup.Link("action", "break"), class("stack"),
				markup.El("input", markup.Attr("type", "hidden"), markup.Attr("name", "name"), markup.Attr("value", target.name)),
				markup.El("input", markup.Attr("type", "hidden"), markup.Attr("name", "fence"), markup.Attr("value", number)),
				markup.El("label", markup.Attr("for", "typed"), markup.Text("To confirm, type the name "), markup.El("strong", isolatedText(target.name))),
				markup.El("input", markup.Attr("type", "text"), markup.Attr("id", "typed"), markup.Attr("name", "typed"), markup.Attr("required", ""),
					markup.Attr("autocomplete", "off"), markup.Attr("spellcheck", "false"), markup.Attr("dir", "auto")),
				text("button", "Break the lease", markup.Attr("type", "submit"), class("danger"))),
			markup.El("p", markup.El("a", markup.Link("href", nameURL(target.name)), markup.Text("← Back, and break nothing"))),
		),
	}})
}

// rowOf returns the row of a name. It reads the name if the last scan did not find it.
func (h *Handler) rowOf(m renderContext, name string) (*overview.Row, error) {
	if row := m.view.Row(name); row != nil {
		return row, nil
	}
	return new(unlistedName).read(h, m, name)
}

// breakDelay returns the Delay of BreakOptions for a lease: 0 if its TTL is not known.
func (h *Handler) breakDelay(row *overview.Row, fence uint64) time.Duration {
	if h.options.BreakDelay != 0 || row == nil {
		return h.options.BreakDelay
	}
	return trust.BreakDelay(row.Holders, fence)
}

// breakLease breaks the lease with the fence that the page has shown, and no other. If
// two people break it at once, the second one gets a page with an error.
func (h *Handler) breakLease(w http.ResponseWriter, r *http.Request, target breakTarget) {
	if !isTyped(r.PostForm.Get("typed"), target.name) {
		h.breakForm(w, r, target, http.StatusUnprocessableEntity, "What was typed is not the name. Nothing was broken.")
		return
	}
	// Go on even if the browser leaves, so that the result is certain.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), breakTimeout)
	defer cancel()
	by := h.options.Identify(r)
	label := strings.ToValidUTF8(by[:min(len(by), driver.MaxLabelSize)], "") // for the holder
	row, _ := h.rowOf(h.latestView(r), target.name)                          // for the log; Break reads the name itself
	delay := h.breakDelay(row, target.fence)
	err := h.overview.Client().Break(ctx, target.name, target.fence, &pawl.BreakOptions{Delay: delay, By: label})
	h.logBreak(ctx, target, max(0, delay), by, err)
	switch {
	case err == nil:
		h.overview.History().Break(target.name, target.fence, by)
		h.overview.Refresh(target.name)
		to := nameURL(target.name) + "&broke=" + strconv.FormatUint(target.fence, 10) + "&proof=" + h.breakProof(target)
		http.Redirect(w, r, to, http.StatusSeeOther)
	case errors.Is(err, pawl.ErrNoSuchLease):
		h.breakForm(w, r, target, http.StatusConflict, "Nothing was broken: no lease has this fence any more. It was released, or it was broken before.")
	case errors.Is(err, pawl.ErrInvalid):
		h.breakForm(w, r, target, http.StatusBadRequest, "Nothing was broken: "+visible.Text(errText(err)))
	case errors.Is(err, errors.ErrUnsupported):
		h.breakForm(w, r, target, http.StatusNotImplemented, "Nothing was broken: "+visible.Text(errText(err)))
	default: // the answer may have been lost
		h.breakForm(w, r, target, http.StatusBadGateway, "It is not known whether the lease was broken: "+visible.Text(errText(err)))
	}
}

// isTyped reports whether typed is the name, raw or escaped as on the page. It ignores
// the number of spaces, which a page does not show.
func isTyped(typed, name string) bool {
	words := strings.Fields(typed)
	return slices.Equal(words, strings.Fields(name)) || slices.Equal(words, strings.Fields(visible.Text(name)))
}

// breakProof makes a parameter of the page after a break. Without a valid proof, no URL
// can make the page claim that a lease is broken.
func (h *Handler) breakProof(t breakTarget) string {
	m := hmac.New(sha256.New, h.proofKey[:])
	fmt.Fprintf(m, "%d %s", t.fence, t.name)
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// logBreak logs a break with the stored name, which contains the tenant's namespace.
func (h *Handler) logBreak(ctx context.Context, target breakTarget, delay time.Duration, by string, err error) {
	words := "pawl: lease broken"
	args := []slog.Attr{
		slog.String("name", h.overview.Client().StoredName(target.name)), slog.Uint64("fence", target.fence), slog.Duration("delay", delay), slog.String("by", by),
	}
	if err != nil {
		words = "pawl: lease not broken"
		args = append(args, slog.String("error", errText(err)))
	}
	h.options.Log.LogAttrs(ctx, slog.LevelWarn, words, args...)
}
