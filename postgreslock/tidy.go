package postgreslock

import (
	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/internal/sqlswap"
	"github.com/pawl-go/pawl/locktable"
)

// tidyPage deletes some names that were unused for the retention time, see
// sqlswap.Tidier. The database stores the position, so that many short processes together
// check all names. After the last name, tidying pauses.
func (s *store) tidyPage(r *request) error {
	var from []byte
	var storedPauseEnd, serverTime int64
	err := r.conn.QueryRow(r.ctx, s.sql.selectTidying).Scan(&from, &storedPauseEnd, &serverTime)
	now, pause := locktable.Instant(serverTime), s.options.Retention/24
	// A pause longer than any that a client stores is from before the clock was set back.
	// tidyPage ignores it.
	if err != nil || serverTime < storedPauseEnd && locktable.Instant(storedPauseEnd) <= now.Add(pause) {
		return err
	}
	page, err := s.page(r, string(from), sqlswap.TidyRows)
	if err != nil {
		return err
	}
	var batch pgx.Batch // one transaction, which locks only the rows of unused names
	for _, row := range sqlswap.Forgettable(page, s.options.Retention) {
		batch.Queue(s.sql.forget, []byte(row.Name), int64(row.Stored.Version))
	}
	next, pauseEnd := "", now.Add(pause)
	if len(page) == sqlswap.TidyRows {
		next, pauseEnd = page[len(page)-1].Name, 0
	}
	batch.Queue(s.sql.setTidying, []byte(next), int64(pauseEnd))
	return r.conn.SendBatch(r.ctx, &batch).Close()
}
