package main

import (
	"database/sql"
	"fmt"
	"os/exec"
	"path/filepath"

	_ "github.com/go-sql-driver/mysql"
	"github.com/pressly/goose/v3/lock"

	_ "github.com/pawl-go/pawl/mysqllock"
)

// startMySQL starts a MariaDB with its default settings.
func startMySQL() (server, error) {
	dir, err := installDatabase("mariadb-install-db of Debian's mariadb-server", func(data string) *exec.Cmd {
		return exec.Command("mariadb-install-db", "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db")
	})
	if err != nil {
		return nil, err
	}
	addr, port, err := freeAddr()
	if err != nil {
		return nil, err
	}
	p := &serverProcess{addr: addr, dir: dir}
	p.cmd = exec.Command("mariadbd", "--no-defaults", "--datadir="+filepath.Join(dir, "data"), "--port="+port, "--bind-address=127.0.0.1",
		"--socket="+filepath.Join(dir, "s"), "--pid-file="+filepath.Join(dir, "pid"), "--max-connections=500", "--skip-name-resolve")
	if err := dropPrivileges(p.cmd, dir); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	db, err := sql.Open("mysql", "root@tcp("+addr+")/mysql")
	if err != nil {
		return nil, err
	}
	p.close = func() { _ = db.Close() }
	p.count = func() (n int64) { // QUESTIONS does not count preparing a statement
		_ = db.QueryRow(`SELECT sum(variable_value) FROM information_schema.global_status
			WHERE variable_name IN ('QUESTIONS', 'COM_STMT_PREPARE')`).Scan(&n)
		return n
	}
	if err := waitReady(db.Ping); err != nil {
		p.stop()
		return nil, err
	}
	for _, s := range []string{
		"CREATE DATABASE bench", "CREATE USER bench@'%'", "GRANT ALL ON bench.* TO bench@'%'",
		"CREATE TABLE bench.lease (name varbinary(255) PRIMARY KEY, token varchar(64), ends datetime(6) NOT NULL)",
	} {
		if _, err := db.Exec(s); err != nil {
			p.stop()
			return nil, err
		}
	}
	return &sqlServer{p, db}, nil
}

func mysqlDSN(addr string) string { return "bench@tcp(" + addr + ")/bench" }

func mysqlURL(addr string) string { return "mysql://bench@" + addr + "/bench" }

func mysqlContenders() []contender {
	return []contender{
		{
			name: "polled row", open: openRow("mysql", mysqlDSN, mysqlRow),
			deleteLock: deleteRow("DELETE FROM bench.lease WHERE name = ?", nameArgument),
		},
		{
			name: "pawl", open: openURL(mysqlURL), renews: true, notifies: true,
			deleteLock: deleteRow("DELETE FROM bench.pawl_names WHERE name = ?", nameArgument),
			endSession: killSessions("SELECT id FROM information_schema.processlist WHERE user = 'bench' AND ? <> ''"),
		},
		{
			name: "GET_LOCK", open: openSession("mysql", mysqlDSN, "DO GET_LOCK(?, 3600)", "DO RELEASE_LOCK(?)"),
			endSession: killSessions("SELECT IS_USED_LOCK(?)"),
		},
		{
			name: "goose, table", open: openGooseTable("mysql", gooseDSN, lock.NewMySQLTableLocker), renews: true,
			deleteLock: deleteRow("DELETE FROM bench.goose_lock WHERE lock_id = ?", gooseIDArgument),
		},
	}
}

// gooseDSN adds the parameter that goose's lockers require.
func gooseDSN(addr string) string { return mysqlDSN(addr) + "?parseTime=true" }

// killSessions returns a remover that ends the sessions that a query finds for the name.
func killSessions(query string) remover {
	return func(s server, _, _ client, name string) error {
		db := s.(*sqlServer).db
		rows, err := db.Query(query, name)
		if err != nil {
			return err
		}
		defer rows.Close()
		var ids []int64
		for rows.Next() {
			var id int64
			if err := rows.Scan(&id); err != nil {
				return err
			}
			ids = append(ids, id)
		}
		for _, id := range ids {
			if _, err := db.Exec(fmt.Sprint("KILL ", id)); err != nil {
				return err
			}
		}
		return rows.Err()
	}
}

var mysqlRow = rowSQL{
	lockSQL: `INSERT INTO lease (name, token, ends) VALUES (?, ?, SYSDATE(6) + INTERVAL ? MICROSECOND)
		ON DUPLICATE KEY UPDATE
			ends = IF(token IS NULL OR ends < SYSDATE(6), VALUES(ends), ends),
			token = IF(ends = VALUES(ends), VALUES(token), token)`,
	unlockSQL: `UPDATE lease SET token = NULL WHERE name = ? AND token = ?`,
}
