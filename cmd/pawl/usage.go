package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// showUsage writes the text of cobra's template, with lines of 80 columns. A custom
// template would link package text/template, which calls methods by name. The linker
// would then keep all methods, and the command would be 1.5 times as large.
func showUsage(c *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:")
	if c.Runnable() {
		b.WriteString("\n  " + c.UseLine())
	}
	if c.HasAvailableSubCommands() {
		b.WriteString("\n  " + c.CommandPath() + " [command]")
	}
	if c.HasExample() {
		b.WriteString("\n\nExamples:\n" + c.Example)
	}
	groups := c.Groups()
	if len(groups) == 0 && c.HasAvailableSubCommands() {
		groups = []*cobra.Group{{Title: "Available Commands"}}
	}
	for _, g := range groups {
		b.WriteString("\n\n" + g.Title + ":")
		for _, sub := range c.Commands() {
			if (sub.IsAvailableCommand() || sub.Name() == "help") && sub.GroupID == g.ID {
				fmt.Fprintf(&b, "\n  %-*s %s", sub.NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
	list := func(heading string, flags *pflag.FlagSet) {
		if flags.HasAvailableFlags() {
			b.WriteString("\n\n" + heading + ":\n" + strings.TrimRight(flags.FlagUsagesWrapped(80), " \n"))
		}
	}
	list("Flags", c.LocalFlags())
	list("Global Flags", c.InheritedFlags())
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n\nUse %q for more information about a command.", c.CommandPath()+" [command] --help")
	}
	_, err := fmt.Fprintln(c.OutOrStderr(), b.String())
	return err
}
