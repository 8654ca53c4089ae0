module github.com/pawl-go/pawl/mysqllock

go 1.26.0

require (
	github.com/go-sql-driver/mysql v1.8.1
	github.com/pawl-go/pawl v0.0.0
)

require (
	filippo.io/edwards25519 v1.1.0 // indirect
	golang.org/x/sys v0.1.0 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)
