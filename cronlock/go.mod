module github.com/pawl-go/pawl/cronlock

go 1.26.0

require (
	github.com/go-co-op/gocron/v2 v2.11.0
	github.com/pawl-go/pawl v0.0.0
	github.com/robfig/cron/v3 v3.0.1
)

require (
	github.com/google/uuid v1.6.0 // indirect
	github.com/jonboulle/clockwork v0.4.0 // indirect
	golang.org/x/exp v0.0.0-20240613232115-7f521ea00fb8 // indirect
	golang.org/x/sys v0.1.0 // indirect
)
