package sqltable

import (
	"context"
	"errors"
	"time"
)

// A DB runs statements.
type DB interface {
	// Begin takes a connection, and begins a transaction that reads what others have
	// committed by then (READ COMMITTED). It waits for each row for so long at most.
	Begin(ctx context.Context, wait time.Duration) (Tx, error)

	// Query runs a statement by itself, and calls row for each row of its answer.
	Query(ctx context.Context, s Statement, row func(scan Scan) error) error

	// Close waits for what is still under way.
	Close()
}

// Scan reads the columns of a row, as sql.Rows.Scan does.
type Scan func(dest ...any) error

// Tx is a transaction. Either Commit or Rollback is its last call.
type Tx interface {
	Query(ctx context.Context, s Statement, row func(scan Scan) error) error
	Exec(ctx context.Context, s Statement) (changed int, err error)

	// Commit runs some last statements, and commits. If one of them does not change the
	// rows that it has to, nothing is changed, and the error is ErrLate.
	Commit(ctx context.Context, last ...Statement) error

	// Rollback undoes everything. It returns at once when ctx is over.
	Rollback(ctx context.Context)
}

// ErrLate means that the server's clock was past the end of a step.
var ErrLate = errors.New("too late by the server's clock")
