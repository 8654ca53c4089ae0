package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/visible"
)

func newDoctor(v *output, loc *location) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor [flags]",
		Short: "Check the settings of the database",
		Long: `Doctor checks the settings of the database and the permissions of this user. It
prints its findings, most serious first: an "error" breaks a guarantee, a
"warning" puts one at risk, and "info" is good to know, such as the version of
the server. It changes no lock.
The page of your database lists the checks:
https://github.com/pawl-go/pawl/blob/main/docs/README.md

With --json it prints one line for each finding, an object with severity,
subject, detail and advice. The advice is empty where nothing is to be done.

The exit code is 78 if there is an "error", 69 if the database is unavailable or
cannot be examined, and 0 otherwise.`,
		Example: `  pawl doctor --url redis://cache.example:6379
  pawl doctor --json | jq -r 'select(.severity == "error").advice'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := v.interruptible(cmd)
			defer stop()
			_, byDefault, err := loc.findURL(cmd)
			if err != nil {
				return err
			}
			show := func(findings []pawl.Finding) error {
				if byDefault {
					findings = append(findings, pawl.Finding{
						Severity: pawl.SeverityInfo, Subject: "default file",
						Detail: "the default file excludes processes of this user on this host only",
						Advice: "for other users or hosts set --url or PAWL_URL",
					})
				}
				if !asJSON {
					return cmp.Or(printFindings(v.out, findings), verdictError(findings))
				}
				for _, f := range findings {
					if err := printJSONLine(v.out, f); err != nil {
						return err
					}
				}
				return verdictError(findings)
			}
			return withClient(ctx, v, loc, cmd, func(c *pawl.Client) error {
				findings, err := c.Diagnose(ctx)
				if err != nil {
					return err
				}
				return show(findings)
			}, func() error { return show(nil) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a line of JSON for each finding")
	return cmd
}

func verdictError(findings []pawl.Finding) error {
	for _, f := range findings {
		if f.Severity == pawl.SeverityError {
			return &exit{code: exitUnsound, err: errors.New("the database cannot keep all of its guarantees; the advice above says what to change")}
		}
	}
	return nil
}

func printFindings(out io.Writer, findings []pawl.Finding) error {
	var b strings.Builder
	if !slices.ContainsFunc(findings, func(f pawl.Finding) bool { return !f.IsFact() }) {
		b.WriteString("no problems found\n")
	}
	for _, f := range findings {
		fmt.Fprintf(&b, "%-7s  %s: %s\n", f.Severity, visible.Text(f.Subject), indented(f.Detail))
		if f.Advice != "" {
			fmt.Fprintf(&b, "         %s\n", indented(f.Advice))
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// indented aligns the lines of a backend's text below each other.
func indented(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	for i, line := range lines {
		lines[i] = visible.Text(strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n         ")
}
