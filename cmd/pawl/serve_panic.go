package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
)

// panicsLogged logs what a handler panics with. The server would do so itself, in a log
// that is thrown away, for others write most of it.
func panicsLogged(h http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			why := recover()
			if why == nil {
				return
			}
			if err, is := why.(error); !is || !errors.Is(err, http.ErrAbortHandler) {
				log.ErrorContext(r.Context(), "pawl: panic", "method", r.Method, "path", r.URL.Path,
					"panic", fmt.Sprint(why), "stack", string(debug.Stack()))
			}
			panic(http.ErrAbortHandler) // the server ends the connection, and says nothing more
		}()
		h.ServeHTTP(w, r)
	})
}
