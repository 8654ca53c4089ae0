package sqlswap

import (
	"context"
	"database/sql"
)

// A Querier is a *sql.DB or a *sql.Tx.
type Querier interface {
	QueryContext(ctx context.Context, statement string, args ...any) (*sql.Rows, error)
}

// ForEachRow runs a query, scans each row into the variables of into, and then calls
// each. For the rows of pgx there is pgx.ForEachRow.
func ForEachRow(ctx context.Context, q Querier, statement string, args, into []any, each func() error) error {
	rows, err := q.QueryContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err = rows.Scan(into...); err == nil {
			err = each()
		}
		if err != nil {
			return err
		}
	}
	return rows.Err()
}
