package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/memlock"
)

// A panicking driver panics when a name is read.
type panicking struct{ driver.Driver }

func (panicking) Inspect(context.Context, string) (driver.Entry, error) { panic("a fault of ours") }

// The panic ends the answer, and is logged; serve goes on.
func TestServeTellsOfAPanic(t *testing.T) {
	client, err := pawl.New(panicking{engine.Full(memlock.New(nil))}, nil)
	if err != nil {
		t.Fatal(err)
	}
	page, said := servedOf(t, serveCommand{}, client)
	answer, err := http.DefaultClient.Do(get(t, page+"health"))
	if err == nil {
		_, err = io.ReadAll(answer.Body)
		_ = answer.Body.Close()
	}
	if err == nil {
		t.Error("it was answered")
	}
	for _, want := range []string{"level=ERROR", `msg="pawl: panic"`, "path=/health", `panic="a fault of ours"`, "serve_panic_test.go"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("there is no %s in %s", want, said)
		}
	}
	if code, _ := fetch(t, http.DefaultClient, get(t, page+"healthz")); code != http.StatusOK {
		t.Errorf("then it answers with %d", code)
	}
}

// http.ErrAbortHandler, with which a handler gives up an answer, is not a fault.
func TestAnAnswerGivenUpIsNoPanic(t *testing.T) {
	var said bytes.Buffer
	h := panicsLogged(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), slog.New(slog.NewTextHandler(&said, nil)))
	defer func() {
		if why := recover(); why != http.ErrAbortHandler || said.Len() > 0 {
			t.Errorf("it panics with %v, and says %s", why, &said)
		}
	}()
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
}
