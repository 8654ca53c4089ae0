package postgreslock

import (
	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/internal/sqlswap"
	"github.com/pawl-go/pawl/locktable"
)

// tidyPage checks some names, see sqlswap.Tidier. The database stores the position, so
// that many short processes together check all names. After the last name, tidying
// pauses.
func (s *store) tidyPage(r *request) error {
	var from []byte
	var rest, serverTime int64
	err := r.conn.QueryRow(r.ctx, s.sql.selectTidying).Scan(&from, &rest, &serverTime)
	now, pause := locktable.Instant(serverTime), s.options.Retention/24
	if err != nil || serverTime < rest && locktable.Instant(rest) <= now.Add(pause) {
		return err // a longer pause was stored before the clock was set back, and does not count
	}
	page, err := s.page(r, string(from), sqlswap.TidyRows)
	if err != nil {
		return err
	}
	var last pgx.Batch // one transaction, in which only unused names are locked
	for _, row := range sqlswap.Forgettable(page, s.options.Retention) {
		last.Queue(s.sql.forget, []byte(row.Name), int64(row.Stored.Version))
	}
	next, pauseEnd := "", now.Add(pause)
	if len(page) == sqlswap.TidyRows {
		next, pauseEnd = page[len(page)-1].Name, 0
	}
	last.Queue(s.sql.setTidying, []byte(next), int64(pauseEnd))
	return r.conn.SendBatch(r.ctx, &last).Close()
}
