package main

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/visible"
)

func completeURL(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return urlPrefixes(), cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// completeName completes a name in use, as the first and only argument. It offers only
// names that need no quotes.
func completeName(loc *location) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		withQuickClient(loc, cmd, func(ctx context.Context, c *pawl.Client) {
			for e, err := range c.List(ctx, prefix) {
				if err != nil && e.Name == "" || len(names) == 1000 { // a name with a damaged row is a name, too
					return
				}
				if isPlain(e.Name) {
					names = append(names, e.Name)
				}
			}
		})
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// isPlain reports whether every shell takes this name literally. That matters because
// other people choose the names: cobra's script for bash inserts the common beginning of
// several candidates without quotes, and evaluates the line at the next TAB. A plain name
// does not begin with "=", which zsh replaces with the path of a command.
func isPlain(name string) bool {
	return strings.IndexAny(name, "-=") != 0 && !strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.M, unicode.Nd) && !strings.ContainsRune("+,-./:=@_", r)
	})
}

// completeRun completes a name, and then lets the shell complete commands and files.
func completeRun(loc *location) cobra.CompletionFunc {
	name := completeName(loc)
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return name(cmd, args, prefix)
	}
}

// completeFence completes a fence of the name on the command line.
func completeFence(loc *location) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		var fences []string
		if len(args) == 1 {
			withQuickClient(loc, cmd, func(ctx context.Context, c *pawl.Client) {
				e, _ := c.Inspect(ctx, args[0]) // after an error, it has no holders
				for _, h := range e.Holders {
					fences = append(fences, fmt.Sprintf("%d\t%s", h.Fence, visible.Text(h.Owner.String())))
				}
			})
		}
		return fences, cobra.ShellCompDirectiveNoFileComp
	}
}

// withQuickClient runs f with a client, if a client can be opened quickly.
func withQuickClient(loc *location, cmd *cobra.Command, f func(context.Context, *pawl.Client)) {
	ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
	defer cancel()
	c, err := loc.openClient(ctx, cmd)
	if err != nil {
		return
	}
	f(ctx, c)
	_ = c.Close()
}
