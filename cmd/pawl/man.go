package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
				return usage(cmd, errors.New("missing DIR"))
			case 1:
				return nil
			}
			return usage(cmd, errors.New("too many arguments; want one DIR"))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return writeManuals(cmd.Root(), args[0])
		},
	}
}

// writeManuals writes a page for a command, and one for each listed command below it.
func writeManuals(c *cobra.Command, dir string) error {
	page := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
	if err := os.WriteFile(filepath.Join(dir, page), []byte(manual(c)), 0o644); err != nil { //nolint:gosec // for all to read
		return err
	}
	for _, below := range c.Commands() {
		if !below.IsAvailableCommand() || below.Name() == "help" {
			continue
		}
		if err := writeManuals(below, dir); err != nil {
			return err
		}
	}
	return nil
}

// manual returns the page of a command, as roff, with the text of its --help.
func manual(c *cobra.Command) string {
	var b strings.Builder
	title := strings.ReplaceAll(c.CommandPath(), " ", "-")
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"pawl\" \"Pawl\"\n", roff(strings.ToUpper(title)))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(title), roff(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n%s\n", roff(c.UseLine()))
	if c.Long != "" {
		b.WriteString(".SH DESCRIPTION\n")
		roffText(&b, c.Long)
	}
	if flags := c.NonInheritedFlags(); flags.HasAvailableFlags() {
		b.WriteString(".SH OPTIONS\n")
		flags.VisitAll(func(f *pflag.Flag) { roffFlag(&b, f) })
	}
	if flags := c.InheritedFlags(); flags.HasAvailableFlags() {
		b.WriteString(".SH GLOBAL OPTIONS\n")
		flags.VisitAll(func(f *pflag.Flag) { roffFlag(&b, f) })
	}
	if c.Example != "" {
		b.WriteString(".SH EXAMPLES\n")
		roffText(&b, c.Example)
	}
	roffSeeAlso(&b, c)
	return b.String()
}

func roffFlag(b *strings.Builder, f *pflag.Flag) {
	kind, usage := pflag.UnquoteUsage(f)
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	fmt.Fprintf(b, ".TP\n\\fB%s\\fR", roff(name))
	if kind != "" {
		fmt.Fprintf(b, " \\fI%s\\fR", roff(kind))
	}
	if f.DefValue != "" && f.DefValue != "0" && f.DefValue != "false" {
		usage += " (default " + f.DefValue + ")"
	}
	fmt.Fprintf(b, "\n%s\n", roff(usage))
}

func roffSeeAlso(b *strings.Builder, c *cobra.Command) {
	var pages []string
	if c.HasParent() {
		pages = append(pages, c.Parent().CommandPath())
	}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() && below.Name() != "help" {
			pages = append(pages, below.CommandPath())
		}
	}
	for i, p := range pages {
		pages[i] = "\\fB" + roff(strings.ReplaceAll(p, " ", "-")) + "\\fR(1)"
	}
	fmt.Fprintf(b, ".SH SEE ALSO\n%s\n", strings.Join(pages, ",\n"))
}

// roffText writes text in paragraphs. Indented lines stay as they are.
func roffText(b *strings.Builder, text string) {
	filled := true
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		line = strings.TrimRight(line, "\n")
		if indented := strings.HasPrefix(line, " "); indented == filled && line != "" {
			b.WriteString(map[bool]string{true: ".nf\n", false: ".fi\n"}[indented])
			filled = !indented
		}
		if line == "" {
			b.WriteString(".PP\n")
			continue
		}
		b.WriteString(roff(line) + "\n")
	}
	if !filled {
		b.WriteString(".fi\n")
	}
}

func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`).Replace(s)
	if strings.HasPrefix(s, ".") {
		return `\&` + s
	}
	return s
}
