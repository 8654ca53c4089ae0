package servertest

import (
	"context"
	"database/sql"
)

// Begin begins a transaction of a *sql.DB or a *sql.Conn. The end of the test rolls it
// back.
func Begin(tb TB, db interface {
	BeginTx(ctx context.Context, o *sql.TxOptions) (*sql.Tx, error)
},
) *sql.Tx {
	tb.Helper()
	tx, err := db.BeginTx(context.Background(), nil)
	noError(tb, err)
	tb.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// Exec runs statements on a *sql.DB, a *sql.Conn or a *sql.Tx.
func Exec(tb TB, db interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}, statements ...string,
) {
	tb.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(context.Background(), s); err != nil {
			tb.Fatalf("%s: %v", s, err)
		}
	}
}
