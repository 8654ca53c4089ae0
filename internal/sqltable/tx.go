package sqltable

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"sync"
	"time"
)

// A DB runs statements.
type DB interface {
	// Begin takes a connection, and begins a transaction that reads what others have
	// committed by then (READ COMMITTED).
	Begin(ctx context.Context) (Tx, error)

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

// Over makes a DB of a *sql.DB. begin are the statements that begin a transaction.
func Over(db *sql.DB, begin ...string) DB { return &plainDB{db: db, begin: begin} }

type plainDB struct {
	db      *sql.DB
	begin   []string
	running sync.WaitGroup // what is rolled back in the background
}

func (p *plainDB) Close() { p.running.Wait() }

func (p *plainDB) Query(ctx context.Context, s Statement, row func(scan Scan) error) error {
	rows, err := p.db.QueryContext(ctx, s.SQL, s.Args...)
	return each(rows, err, row)
}

func each(rows *sql.Rows, err error, row func(scan Scan) error) error {
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// Begin works on a connection, not on a sql.Tx: that one would send its BEGIN alone, and
// its COMMIT with no ctx.
func (p *plainDB) Begin(ctx context.Context) (Tx, error) {
	conn, err := p.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	tx := &plainTx{db: p, conn: conn}
	for _, sql := range p.begin {
		if _, err := conn.ExecContext(ctx, sql); err != nil {
			tx.Rollback(ctx)
			return nil, err
		}
	}
	return tx, nil
}

type plainTx struct {
	db   *plainDB
	conn *sql.Conn
}

func (t *plainTx) Query(ctx context.Context, s Statement, row func(scan Scan) error) error {
	rows, err := t.conn.QueryContext(ctx, s.SQL, s.Args...)
	return each(rows, err, row)
}

func (t *plainTx) Exec(ctx context.Context, s Statement) (int, error) {
	r, err := t.conn.ExecContext(ctx, s.SQL, s.Args...)
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	return int(n), err
}

// Commit implements Tx. Nobody else can have the rows between a statement that was in
// time and the COMMIT behind it: whoever comes later finds them changed.
func (t *plainTx) Commit(ctx context.Context, last ...Statement) error {
	for _, s := range last {
		n, err := t.Exec(ctx, s)
		if err == nil && s.Rows >= 0 && n != s.Rows {
			err = ErrLate
		}
		if err != nil {
			t.Rollback(ctx)
			return err
		}
	}
	_, err := t.conn.ExecContext(ctx, "COMMIT")
	if err != nil {
		t.Rollback(ctx)
		return err
	}
	return t.conn.Close()
}

// Rollback implements Tx. A connection on which that fails is ended: so the server undoes
// what was done on it, and nobody else gets it with a transaction open.
func (t *plainTx) Rollback(ctx context.Context) {
	rollback := func() {
		// not the caller's ctx, for it is over
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if _, err := t.conn.ExecContext(ctx, "ROLLBACK"); err != nil {
			_ = t.conn.Raw(func(any) error { return sqldriver.ErrBadConn })
		}
		_ = t.conn.Close()
	}
	if ctx.Err() == nil {
		rollback()
		return
	}
	t.db.running.Go(rollback)
}
