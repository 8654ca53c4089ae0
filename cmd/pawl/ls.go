package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-go/pawl"
)

func newList(v *output, loc *location) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ls [flags] [PREFIX]",
		Short: "List locks that are held, closed or waited for",
		Long: `Ls lists the names that are held, closed or waited for, sorted: one line for
each holder, or one for the name if it has no holder. With PREFIX it lists only
the names that begin with it. If there are none, it prints nothing.

With --json it prints one line for each name, an object like that of
pawl show --json.

If the row of a name is damaged, ls prints that on standard error, and lists the
others.

The exit code is 0, or 69 if the database is unavailable or a row is damaged.`,
		Example: `  pawl ls
  pawl ls report:
  pawl ls --json | jq -r 'select(.waiters | length > 10).name'`,
		Args:              optionalPrefix,
		ValidArgsFunction: completeName(loc),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := v.interruptible(cmd)
			defer stop()
			return withClient(ctx, v, loc, cmd, func(c *pawl.Client) error {
				return list(ctx, v, c, strings.Join(args, ""), asJSON)
			}, doNothing)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a line of JSON for each name")
	return cmd
}

// list prints the names that begin with the prefix. It prints a table after it has read
// all names, to align the columns. Last, where the user sees them, it prints the errors
// of the names that it cannot read. They also set the exit code.
func list(ctx context.Context, v *output, c *pawl.Client, prefix string, asJSON bool) error {
	var entries []pawl.Entry // of the table
	var damaged []error
	for e, err := range c.List(ctx, prefix) {
		switch {
		case err != nil && e.Name == "":
			return err
		case err != nil:
			damaged = append(damaged, err)
		case !asJSON:
			entries = append(entries, e)
		default:
			if err := printEntryJSON(v.out, e); err != nil {
				return err
			}
		}
	}
	if err := printList(v.out, entries, time.Now()); err != nil || len(damaged) == 0 {
		return err
	}
	for _, err := range damaged {
		v.sayError(err)
	}
	return &exit{code: exitUnavailable}
}

// withClient runs f with a client. After a signal it returns the signal's exit code. If
// the default file does not exist, it prints that, and calls ifNoFile instead.
func withClient(ctx context.Context, v *output, loc *location, cmd *cobra.Command, f func(*pawl.Client) error, ifNoFile func() error) error {
	c, err := loc.openClient(ctx, cmd)
	_, noFile := errors.AsType[*noDefaultFileError](err)
	switch {
	case err == nil:
		err = f(c)
		if _, notDetached := errors.AsType[notDetachedError](err); !notDetached {
			_ = closeSoon(c) // it releases nothing, except after a failed release
		}
	case noFile:
		v.sayError(err)
		err = ifNoFile()
	}
	return orSignal(ctx, err)
}

// doNothing is the ifNoFile of commands that then print nothing more.
func doNothing() error { return nil }

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError(cmd, fmt.Errorf("unexpected argument %q", args[0]))
	}
	return nil
}
