package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// newMan returns the hidden command man, for packagers.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:               "man DIR",
		Short:             "Write the manual pages into a folder",
		Hidden:            true,
		ValidArgsFunction: filesOnly,
		Args: func(cmd *cobra.Command, args []string) error {
			switch len(args) {
			case 0:
				return usageError(cmd, errors.New("missing DIR"))
			case 1:
				return nil
			}
			return usageError(cmd, errors.New("too many arguments; want one DIR"))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return writeManuals(cmd.Root(), args[0])
		},
	}
}

// writeManuals writes a page for a command, and one for each listed subcommand.
func writeManuals(c *cobra.Command, dir string) error {
	page := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
	if err := os.WriteFile(filepath.Join(dir, page), []byte(manualPage(c)), 0o644); err != nil { //nolint:gosec // for all to read
		return err
	}
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() || sub.Name() == "help" {
			continue
		}
		if err := writeManuals(sub, dir); err != nil {
			return err
		}
	}
	return nil
}

// manualPage returns the page of a command, as roff: its --help, line by line.
func manualPage(c *cobra.Command) string {
	c.InitDefaultHelpFlag()
	c.InitDefaultVersionFlag()
	title := strings.ReplaceAll(c.CommandPath(), " ", "-")
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"pawl\" \"Pawl\"\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n", escapeRoff(strings.ToUpper(title)), escapeRoff(title), escapeRoff(c.Short))
	for line := range strings.Lines(strings.TrimSpace(cmp.Or(c.Long, c.Short)) + "\n\n" + c.UsageString()) {
		b.WriteString(escapeRoff(line))
	}
	return b.String() + ".fi\n"
}

func escapeRoff(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`).Replace(line)
	if strings.HasPrefix(line, ".") {
		return `\&` + line
	}
	return line
}
