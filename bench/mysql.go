package main

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	_ "github.com/go-sql-driver/mysql"
	"github.com/pressly/goose/v3/lock"

	_ "github.com/pawl-go/pawl/mysqllock"
)

// startMySQL starts a MariaDB as it is installed.
func startMySQL() (server, error) {
	dir, err := os.MkdirTemp("", "pawl-bench")
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	install := exec.Command("mariadb-install-db", "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db")
	if err := unprivileged(install, dir); err != nil {
		return nil, err
	}
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mariadb-install-db, of Debian's mariadb-server, is needed: %w\n%s", err, out)
	}
	addr, port, err := freeAddr()
	if err != nil {
		return nil, err
	}
	p := &program{addr: addr, dir: dir}
	p.cmd = exec.Command("mariadbd", "--no-defaults", "--datadir="+data, "--port="+port, "--bind-address=127.0.0.1",
		"--socket="+filepath.Join(dir, "s"), "--pid-file="+filepath.Join(dir, "pid"), "--max-connections=500", "--skip-name-resolve")
	if err := unprivileged(p.cmd, dir); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	db, err := sql.Open("mysql", "root@tcp("+addr+")/mysql")
	if err != nil {
		return nil, err
	}
	p.ends = func() { _ = db.Close() }
	p.count = func() (n int64) {
		_ = db.QueryRow("SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'QUESTIONS'").Scan(&n)
		return n
	}
	if err := ready(db.Ping); err != nil {
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
	return p, nil
}

func mysqlDSN(addr string) string { return "bench@tcp(" + addr + ")/bench" }

func mysqlContenders() []contender {
	return []contender{
		{name: "polled row", open: openRow("mysql", mysqlDSN, mysqlRow)},
		{name: "pawl", open: openURL(func(addr string) string { return "mysql://bench@" + addr + "/bench" }), renews: true, tells: true},
		{name: "GET_LOCK", open: openSession("mysql", mysqlDSN, "DO GET_LOCK(?, 3600)", "DO RELEASE_LOCK(?)")},
		{name: "goose, table", open: openGooseTable("mysql", mysqlDSN, lock.NewMySQLTableLocker), renews: true},
	}
}

var mysqlRow = rowSQL{
	take: `INSERT INTO lease (name, token, ends) VALUES (?, ?, SYSDATE(6) + INTERVAL ? MICROSECOND)
		ON DUPLICATE KEY UPDATE
			ends = IF(token IS NULL OR ends < SYSDATE(6), VALUES(ends), ends),
			token = IF(ends = VALUES(ends), VALUES(token), token)`,
	free: `UPDATE lease SET token = NULL WHERE name = ? AND token = ?`,
}
