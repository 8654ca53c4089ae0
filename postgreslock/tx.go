package postgreslock

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/sqltable"
)

// The two statements that begin a transaction as a step needs it, whatever the defaults
// of the database are. Nobody waits for long for a client that hangs in the middle.
const (
	begin  = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
	bounds = "SELECT pg_catalog.set_config('lock_timeout', $1, true), pg_catalog.set_config('idle_in_transaction_session_timeout', '5s', true)"
)

// batches is a sqltable.DB whose transactions mostly take two round trips: what begins
// one is sent with its first question, and what ends it with its last change.
type batches struct {
	*server
	running engine.Background // what is undone in the background
}

func (b *batches) Begin(ctx context.Context, wait time.Duration) (sqltable.Tx, error) {
	c, free, err := b.connect(ctx)
	if err != nil {
		return nil, err
	}
	return &tx{b: b, c: c, free: free, wait: wait}, nil
}

func (b *batches) Query(ctx context.Context, s sqltable.Statement, row func(scan sqltable.Scan) error) error {
	c, free, err := b.connect(ctx)
	if err != nil {
		return err
	}
	defer free()
	rows, err := c.Query(ctx, s.SQL, s.Args...)
	return each(rows, err, row)
}

func (b *batches) Close() { b.running.Close() }

func each(rows pgx.Rows, err error, row func(scan sqltable.Scan) error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

type tx struct {
	b     *batches
	c     *pgx.Conn
	free  func()
	wait  time.Duration // for a row
	began bool
}

func (t *tx) Query(ctx context.Context, s sqltable.Statement, row func(scan sqltable.Scan) error) (err error) {
	if t.began {
		rows, err := t.c.Query(ctx, s.SQL, s.Args...)
		return each(rows, err, row)
	}
	t.began = true
	all := &pgx.Batch{}
	all.Queue(begin)
	all.Queue(bounds, strconv.FormatInt(t.wait.Milliseconds(), 10))
	all.Queue(s.SQL, s.Args...)
	answers := t.c.SendBatch(ctx, all)
	defer func() { t.b.ended(ctx, t.c, err) }()
	for range 2 {
		if err == nil {
			_, err = answers.Exec()
		}
	}
	if err == nil {
		rows, e := answers.Query()
		err = each(rows, e, row)
	}
	if closed := answers.Close(); err == nil {
		err = closed
	}
	return err
}

func (t *tx) Exec(ctx context.Context, s sqltable.Statement) (int, error) {
	if !t.began {
		if err := t.Query(ctx, sqltable.Statement{SQL: "SELECT 1"}, func(sqltable.Scan) error { return nil }); err != nil {
			return 0, err
		}
	}
	tag, err := t.c.Exec(ctx, s.SQL, s.Args...)
	t.b.ended(ctx, t.c, err)
	return int(tag.RowsAffected()), err
}

// Commit implements sqltable.Tx. The COMMIT is sent with the last statements, unless one
// of these may find that it is too late. Then it is sent after that has answered: nobody
// else can have the rows in between, so whoever comes later finds them changed.
func (t *tx) Commit(ctx context.Context, last ...sqltable.Statement) error {
	all := &pgx.Batch{}
	for _, s := range last {
		if s.Rows < 0 {
			all.Queue(s.SQL, s.Args...)
			continue
		}
		n, err := t.Exec(ctx, s)
		if err == nil && n != s.Rows {
			err = sqltable.ErrLate
		}
		if err != nil {
			t.Rollback(ctx)
			return err
		}
	}
	all.Queue("COMMIT")
	if err := t.c.SendBatch(ctx, all).Close(); err != nil {
		t.Rollback(ctx)
		return err
	}
	t.free()
	return nil
}

// Rollback implements sqltable.Tx. The caller waits for it only once Close has begun.
func (t *tx) Rollback(context.Context) {
	t.b.running.Go(func() {
		undo(t.c)
		t.free()
	})
}
