// Command pawl runs commands under distributed locks, and shows who holds them.
//
//	pawl run nightly -- ./report.sh    one at a time, the others wait
//	pawl run -n nightly -- ./report.sh one at a time, the others give up
//	pawl ls                            who holds what
//	pawl show nightly                  who holds it, and who waits
//	pawl break nightly                 take it from its holder
//	pawl doctor                        what is wrong with the backend's settings
//
// The locks are where --url says, else PAWL_URL, else in a SQLite file of this user, for the processes of one
// host.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

func main() { os.Exit(pawlMain()) }

// pawlMain is main, and returns the exit code: tests run the command in their own binary with it.
func pawlMain() int {
	v := &voice{out: os.Stdout, err: os.Stderr}
	root := newRoot(v)
	_, err := root.ExecuteC()
	if err == nil {
		return 0
	}
	e, ok := errors.AsType[*exit](err)
	if !ok {
		e = &exit{code: codeOf(err), err: err}
	}
	if e.err != nil {
		v.sayError(e.err)
	}
	if e.key != nil {
		sharedEnd(e.key)
	}
	return e.code
}

func newRoot(v *voice) *cobra.Command {
	cobra.EnableCommandSorting = false
	cobra.MousetrapHelpText = "" // started from Explorer, it is still the same command
	root := &cobra.Command{
		Use:   "pawl",
		Short: "Distributed locks: only one worker at a time",
		Long: `Pawl runs commands under distributed locks, over a database that is already there: only one worker at a
time, on any number of machines.

The locks are where --url says, else the variable PAWL_URL, else in $XDG_STATE_HOME/pawl/locks.db
(~/.local/state/pawl/locks.db): a SQLite file, for the processes of this user on this host. Only run makes it.`,
		Example: `  pawl run nightly -- ./report.sh
  PAWL_URL=sqlite:/var/lib/pawl/locks.db pawl ls`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(cmd, errors.New("which verb? run, ls, show, break, doctor or version"))
			}
			problem := fmt.Sprintf("there is no verb %q", args[0])
			if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
				problem += fmt.Sprintf("; did you mean %q?", like[0])
			}
			return usage(cmd, errors.New(problem))
		},
		RunE:          func(*cobra.Command, []string) error { return nil }, // Args refuses all
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SuggestionsMinimumDistance = 2
	root.SetOut(v.out)
	root.SetErr(v.err)
	root.SetFlagErrorFunc(flagError)
	where := &location{v: v}
	root.PersistentFlags().StringVar(&where.url, "url", "", "where the locks are, as `URL` (default $PAWL_URL, else a SQLite file)")
	must(root.RegisterFlagCompletionFunc("url", completeURL))
	root.AddCommand(newRun(v, where), newList(v, where), newShow(v, where), newBreak(v, where), newDoctor(v, where), newVersion(v))
	root.PersistentPreRun = func(*cobra.Command, []string) { where.warn() }
	root.SetHelpCommand(helpCommand(root))
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			shells(c)
		}
	}
	root.Flags().Bool("version", false, "show the version of pawl, and the backends in it") // without cobra's -v
	root.Version = version()
	root.SetVersionTemplate(versionText())
	return root
}

// shells refuses a shell that cobra has no completion for: it would print its help, and eval would run that.
func shells(completion *cobra.Command) {
	var known []string
	for _, c := range completion.Commands() {
		known = append(known, c.Name())
	}
	completion.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage(cmd, fmt.Errorf("which shell? %s", strings.Join(known, ", ")))
		}
		return usage(cmd, fmt.Errorf("there is no completion for %q; there is for %s", args[0], strings.Join(known, ", ")))
	}
	completion.RunE = func(*cobra.Command, []string) error { return nil } // Args refuses all
}

// helpCommand is cobra's, but a topic that there is not is an error.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:               "help [VERB]",
		Short:             "Show the help of a verb",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return usage(cmd.Root(), fmt.Errorf("there is no verb %q", args[0]))
			}
			return topic.Help()
		},
	}
}

// must is for errors that only a mistake in this program can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
