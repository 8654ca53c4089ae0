// Package sqltable makes a [locktable.Table] of an SQL database: one row per name, read
// FOR UPDATE and written in a transaction, by the clock of the server.
//
// What two servers say differently stands in a [Dialect]. A backend gives one, and a [DB]
// that runs statements.
package sqltable
