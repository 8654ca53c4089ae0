package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
)

// panicsLogged logs a handler's panic. The server would log it to its own log, which pawl
// discards, because it is full of clients' mistakes.
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
			panic(http.ErrAbortHandler) // the server closes the connection without a message
		}()
		h.ServeHTTP(w, r)
	})
}
