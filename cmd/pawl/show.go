package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

func newShow(v *output, loc *location) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show [flags] NAME",
		Short: "Show who holds a lock and who waits for it",
		Long: `Show prints who holds NAME, since when, and how long each lease lasts if it is
not renewed; then who waits, in the order in which they will be served. Times
are read from the clock of the database. A free name is no error. Neither is a
name that was never locked here, but show says so: it may be mistyped. A
database forgets names that are not in use, by default after a day.

With --json it prints one object: name, known (false if it was never locked, or
is forgotten), fence (the last one granted, 0 if none is known), closed_for_ms,
holders and waiters; and value, in base64, and
value_fence if the name keeps a value. A holder has fence, kind
(exclusive, shared or permits), permits and limit (0 for other kinds), owner
(` + ownerKeys() + `), since, expires_in_ms,
ttl_ms (the TTL that its last claim or renewal asked for), and released: true if
it was released and is kept for its --min-hold. A waiter has the same fields,
except fence, ttl_ms and released.

The exit code is 0, or 69 if the database is unavailable.`,
		Example: `  pawl show nightly
  pawl show --json nightly | jq '.holders[0].owner.host'`,
		Args:              oneName,
		ValidArgsFunction: completeName(loc),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := v.interruptible(cmd)
			defer stop()
			show := func(e pawl.Entry) error {
				if asJSON {
					return printEntryJSON(v.out, e)
				}
				return printEntry(v.out, e, time.Now())
			}
			return withClient(ctx, v, loc, cmd, func(c *pawl.Client) error {
				e, err := c.Inspect(ctx, args[0])
				if err != nil {
					return err
				}
				return show(e)
			}, func() error { return show(pawl.Entry{Name: args[0]}) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one object of JSON")
	return cmd
}

func optionalPrefix(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usageError(cmd, errors.New("too many arguments; want one PREFIX"))
	}
	return nil
}

// oneName requires exactly one valid name.
func oneName(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return usageError(cmd, errors.New("missing NAME"))
	case 1:
		return usageError(cmd, driver.ValidateName(args[0]))
	}
	return usageError(cmd, errors.New("too many arguments; want one NAME"))
}
