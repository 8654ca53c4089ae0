module github.com/pawl-go/pawl

go 1.26.0

require (
	golang.org/x/sys v0.1.0
	pgregory.net/rapid v1.3.0
)
