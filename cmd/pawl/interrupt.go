package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// interruptible returns a ctx that ends with SIGINT or SIGTERM. These signals then also
// end writes to standard output or error that block because no process reads. A second
// signal ends pawl at once. stop restores the previous behaviour.
func (v *output) interruptible(cmd *cobra.Command) (ctx context.Context, stop context.CancelFunc) {
	ctx, cancel := untilSignal(cmd, func(s os.Signal) error { return &exit{code: exitSignal + signalNumber(s), deathSignal: s} }, os.Interrupt, syscall.SIGTERM)
	out, err := v.out, v.err
	v.out, v.err = &interruptibleWriter{ctx: ctx, to: out}, &interruptibleWriter{ctx: ctx, to: err}
	return ctx, func() {
		v.out, v.err = out, err
		cancel()
	}
}

// untilSignal returns a ctx that ends with one of the signals. end returns its cause. A
// signal that pawl ignored from its start stays ignored.
func untilSignal(cmd *cobra.Command, end func(os.Signal) error, signals ...os.Signal) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(cmd.Context())
	caught := make(chan os.Signal, 1)
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(caught, s)
		}
	}
	go func() {
		select {
		case s := <-caught:
			signal.Stop(caught)
			cancel(end(s))
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(caught)
		cancel(nil)
	}
}

// orSignal returns the exit error of the signal that has ended ctx, if that caused err.
func orSignal(ctx context.Context, err error) error {
	if end, ok := errors.AsType[*exit](context.Cause(ctx)); ok && errors.Is(err, context.Canceled) {
		return end
	}
	return err
}

// untilDone returns the result of read, or the error of ctx if ctx ends before. read may
// block for ever, for example on a terminal.
func untilDone[T any](ctx context.Context, read func() (T, error)) (none T, _ error) {
	var got T
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		got, err = read()
	}()
	select {
	case <-done:
		return got, err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// An interruptibleWriter gives up a write endFlushTimeout after the end of ctx, so that a
// signal also ends a write that blocks because no process reads.
type interruptibleWriter struct {
	ctx   context.Context
	to    io.Writer
	stuck atomic.Bool
}

func (w *interruptibleWriter) Write(p []byte) (int, error) {
	if w.stuck.Load() {
		return 0, context.Canceled
	}
	var n int
	var err error
	text, written := bytes.Clone(p), make(chan struct{})
	go func() {
		defer close(written)
		n, err = w.to.Write(text)
	}()
	select {
	case <-written:
		return n, err
	case <-w.ctx.Done():
	}
	select {
	case <-written:
		return n, err
	case <-time.After(endFlushTimeout):
		w.stuck.Store(true)
		return 0, context.Canceled
	}
}
