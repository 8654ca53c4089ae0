package dashboard

import (
	"net/http"

	"github.com/pawl-go/pawl/internal/markup"
)

// askToken answers a request without the token with a form. why is the reason for which
// the last token was refused, or empty.
func (h *Handler) askToken(w http.ResponseWriter, r *http.Request, why string) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="pawl"`)
	status := http.StatusUnauthorized
	if wait := w.Header().Get("Retry-After"); wait != "" {
		status, why = http.StatusTooManyRequests, "Too many wrong tokens came from your address. Try again in "+wait+" s."
	}
	complaint := markup.HTML{}
	if why != "" {
		complaint = text("p", why, class("complaint"), markup.Attr("role", "alert"))
	}
	h.write(w, r, page{title: "Sign in", status: status, body: []markup.Part{
		markup.El("section", class("card narrow"),
			text("h1", "Sign in"), complaint,
			text("p", "This page wants the token that it was started with."),
			markup.El("form", markup.Attr("method", "post"), markup.Link("action", "login"), class("stack"),
				text("label", "Token", markup.Attr("for", "token")),
				markup.El("input", markup.Attr("type", "password"), markup.Attr("id", "token"), markup.Attr("name", "token"),
					markup.Attr("required", ""), markup.Attr("autocomplete", "current-password"), markup.Attr("maxlength", "512")),
				text("button", "Sign in", markup.Attr("type", "submit"), class("primary"))),
		),
	}})
}

// login takes the token from the form, and sets a cookie. It takes no token from a URL,
// because a URL stays in histories and logs.
func (h *Handler) login(w http.ResponseWriter, r *http.Request) {
	if !h.auth.asked {
		http.Redirect(w, r, "./", http.StatusSeeOther)
		return
	}
	given := r.PostFormValue("token")
	if given == "" || !h.auth.checkToken(w, r, given, false) {
		h.askToken(w, r, "This is not the token.")
		return
	}
	h.auth.admit(w, r)
	http.Redirect(w, r, "./", http.StatusSeeOther)
}

func (h *Handler) logout(w http.ResponseWriter, r *http.Request) {
	h.auth.leave(w, r)
	http.Redirect(w, r, "./", http.StatusSeeOther)
}
