package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

func newVersion(v *output) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show the version of pawl and its backends",
		Example: "  pawl version",
		Args:    noArgs,
		RunE:    func(*cobra.Command, []string) error { return printVersion(v) },
	}
}

func printVersion(v *output) error {
	_, err := fmt.Fprintf(v.out, "pawl %s\n%s %s/%s\nbackends: %s\n",
		version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, strings.Join(urlPrefixes(), " "))
	return err
}

// version returns the module's version, with the commit if it was built from a clone.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(unknown)"
	}
	commit, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = ", changed"
		}
	}
	if commit == "" || strings.Contains(info.Main.Version, commit) {
		return info.Main.Version
	}
	return fmt.Sprintf("%s (commit %s%s)", info.Main.Version, commit, dirty)
}
