package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
)

func newSchema(v *output) *cobra.Command {
	var t tables
	cmd := &cobra.Command{
		Use:   "schema [flags] BACKEND",
		Short: "Print the SQL that makes the tables",
		Long: `Schema prints the SQL that makes the tables of a backend, postgres or mysql. An
administrator can run it if the user of the locks may not create tables. It
changes no table that exists, so running it again does no harm.

Give --schema and --prefix as in the URL that the locks are opened with.`,
		Example: `  pawl schema postgres | psql --single-transaction app
  pawl schema mysql --prefix locks_ | mysql app`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || schemas[args[0]] == nil {
				return usageError(cmd, fmt.Errorf("want one backend of %s%s", cmp.Or(wordList(slices.Sorted(maps.Keys(schemas))), "none"), leftOutHint))
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return slices.Sorted(maps.Keys(schemas)), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := schemas[args[0]](t)
			if err == nil {
				_, err = fmt.Fprint(v.out, text)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&t.schema, "schema", "", "make them in this schema (postgres; default pawl)")
	cmd.Flags().StringVar(&t.prefix, "prefix", "", "begin the names of tables with this")
	return cmd
}

// tables has the flags that choose the tables.
type tables struct{ schema, prefix string }
