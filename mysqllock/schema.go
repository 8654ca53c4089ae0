package mysqllock

import "strings"

// schema creates the tables of a driver. Names are bytes, so that no collation compares
// them. The columns entry and version have the state. People read the columns holders,
// until and fence; waiters poll holders and fence. Each row of the table "lost" notifies
// one client, by its inbox, that it has lost a lease.
const schema = `CREATE TABLE IF NOT EXISTS {prefix}names (
  name    VARBINARY(255)  NOT NULL PRIMARY KEY,
  version BIGINT UNSIGNED NOT NULL,
  entry   LONGBLOB        NOT NULL,
  fence   BIGINT UNSIGNED NOT NULL COMMENT 'the last one granted',
  holders VARCHAR(255)    CHARACTER SET utf8mb4 NOT NULL COMMENT 'empty: free',
  until   DATETIME(6)     NULL COMMENT 'UTC; when the last lease ends if nobody renews it'
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS {prefix}lost (
  id    BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  inbox VARBINARY(32)   NOT NULL,
  token BINARY(16)      NOT NULL,
  at    BIGINT          NOT NULL COMMENT 'microseconds since 1970',
  KEY inbox (inbox),
  KEY at (at)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
`

// command returns the `pawl` command that prints the schema of these options.
func (o *Options) command() string {
	if o.Prefix == defaultPrefix {
		return "pawl schema mysql"
	}
	return "pawl schema mysql --prefix " + o.Prefix
}

// Schema returns the statements that create the tables of a driver with these options. An
// administrator runs them if the driver's user may not create tables. That user needs the
// rights to SELECT, INSERT, UPDATE and DELETE in both tables.
func Schema(o *Options) (string, error) {
	options, err := o.withDefaults()
	if err != nil {
		return "", err
	}
	return strings.ReplaceAll(schema, "{prefix}", options.Prefix), nil
}
