package redislock_test

import (
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// If the server lacks a command, or has another name for it, the first step that needs it
// returns an error, and the doctor names the command.
func TestACommandThatTheServerLacksIsNamed(t *testing.T) {
	t.Parallel()
	for command, step := range map[string]func(t *testing.T, d driver.Driver) error{
		"GETEX": func(t *testing.T, d driver.Driver) error {
			return d.Release(ctx, lease(mutex("job")))
		},
		"UNLINK": func(t *testing.T, d driver.Driver) error {
			_, err := d.Acquire(ctx, reader("job"))
			return err
		},
		"HLEN": func(t *testing.T, d driver.Driver) error {
			gets(t, d, reader("job"))
			_, err := d.Acquire(ctx, mutex("job"))
			return err
		},
		"SET": func(t *testing.T, d driver.Driver) error {
			_, err := d.Acquire(ctx, mutex("job"))
			return err
		},
		"PUBLISH": nil, // only waiters need it
		"INFO":    nil, // only the doctor needs it
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, "--appendonly", "yes", "--rename-command", command, "")
			d := openDriver(t, "redis://"+server.Addr)
			if step != nil {
				unavailable(t, step(t, d), true, "doctor")
			} else {
				c := queued("job")
				gets(t, d, mutex("job"))
				waits(t, d, c)
			}
			found := servertest.FindingsOf(t, d)
			if named := found.Have("error commands", server.Addr, command) || command == "INFO" && found.Have("info server settings", "unknown command"); !named || found.Have("error rights") {
				t.Errorf("%v; want %s named", found, command)
			}
		})
	}
}
