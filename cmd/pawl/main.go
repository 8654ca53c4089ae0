// Command pawl runs commands under distributed locks, and shows who holds them.
//
//	pawl run nightly -- ./report.sh              one at a time, the others wait
//	pawl run -n nightly -- ./report.sh           one at a time, the others give up
//	pawl once --every 24h nightly -- ./report.sh on one of many hosts, once a day
//	pawl elect scheduler -- ./serve              on one of many hosts, the leader
//	pawl acquire --handle lock deploy            leave it held, for later steps
//	pawl renew --handle lock                     hold it for longer
//	pawl release --handle lock                   give it back
//	pawl ls                                      who holds what
//	pawl show nightly                            who holds it, and who waits
//	pawl watch nightly                           a line for each change
//	pawl wait nightly                            until it is free
//	pawl top                                     all of it, live
//	pawl serve                                   all of it in a browser
//	pawl break nightly                           take it from its holder
//	pawl doctor                                  what is wrong with the backend's settings
//	pawl bench                                   how fast the backend locks
//	pawl prove                                   that the locks hold when things go wrong
//	pawl schema postgres                         the SQL that makes the tables
//
// The locks are at --url, otherwise PAWL_URL or the URL in the file that PAWL_URL_FILE
// names, otherwise in a SQLite file of this user, for the processes of one host.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func main() { os.Exit(pawlMain()) }

// pawlMain is main, and returns the exit code, so that tests can run the command in their
// own binary.
func pawlMain() int {
	return execute(&output{os.Stdout, os.Stderr, term.IsTerminal(int(os.Stderr.Fd()))}, os.Args[1:])
}

// execute runs the command with these arguments, prints its error, and returns its code.
func execute(v *output, args []string) int {
	root := newRoot(v)
	root.SetArgs(args)
	out := &errorWriter{to: v.out}
	root.SetOut(out) // for cobra's output, such as the help
	_, err := root.ExecuteC()
	if err == nil {
		err = out.err
	}
	e, ok := errors.AsType[*exit](err)
	switch {
	case err == nil:
		e = &exit{}
	case !ok:
		e = &exit{code: codeOf(err), err: err}
	}
	if e.err != nil {
		v.neverBlock()
		v.sayError(e.err)
	}
	v.flush(endFlushTimeout)
	if e.keySignal != nil {
		endGroup(e.keySignal)
	}
	if e.deathSignal != nil {
		killSelf(e.deathSignal)
	}
	return e.code
}

// setUpCobra sets cobra's global variables once, because tests make several roots at a
// time.
var setUpCobra = sync.OnceFunc(func() {
	cobra.EnableCommandSorting = false
	cobra.MousetrapHelpText = "" // so that Windows Explorer may start pawl
})

func newRoot(v *output) *cobra.Command {
	setUpCobra()
	showsVersion := false
	root := &cobra.Command{
		Use:   "pawl",
		Short: "Distributed locks on a database you already run",
		Long: `Pawl runs commands under distributed locks, so that only one worker runs at a
time, on any number of machines. The locks are kept in a database you already
run, or in a file.

--url gives the database. Without it, the variable PAWL_URL does, or the first
line of the file that PAWL_URL_FILE names; only one of the two may be set:

` + urlColumns() + `
The first use makes the tables that it needs. Without a URL it is a SQLite file
for the processes of this user on this host: $XDG_STATE_HOME/pawl/locks.db, or
~/.local/state/pawl/locks.db. Only serve and commands that lock create it.

What each error means, and what to do next:
https://github.com/pawl-go/pawl/blob/main/docs/errors.md`,
		Example: `  pawl run nightly -- ./report.sh
  PAWL_URL=sqlite:/var/lib/pawl/locks.db pawl ls`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			problem := fmt.Sprintf("unknown command %q", args[0])
			if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
				problem += fmt.Sprintf("; did you mean %q?", similar[0])
			}
			return usageError(cmd, errors.New(problem))
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if showsVersion {
				return printVersion(v)
			}
			return cmd.Help()
		},
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SuggestionsMinimumDistance = 2
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.SetOut(v.out)
	root.SetErr(v.err)
	root.SetFlagErrorFunc(flagError)
	loc := &location{v: v}
	root.PersistentFlags().StringVar(&loc.url, "url", "", "the database that keeps the locks, as a `URL` (default $PAWL_URL or $PAWL_URL_FILE, else a SQLite file)")
	must(root.RegisterFlagCompletionFunc("url", completeURL))
	root.PersistentFlags().SortFlags = false
	root.PersistentFlags().StringVar(&loc.namespace, "namespace", "", "see and lock only the names of this `NAMESPACE`, or of one inside another: A/B (default $PAWL_NAMESPACE, else all names)")
	addGroup(root, "Run a command under a lock", newRun(v, loc), newOnce(v, loc), newElect(v, loc))
	addGroup(root, "Hold a lock over several steps", newAcquire(v, loc), newRenew(v, loc), newRelease(v, loc))
	addGroup(root, "See who holds what",
		newList(v, loc), newShow(v, loc), newWatch(v, loc), newWait(v, loc), newTop(v, loc), newServe(v, loc))
	addGroup(root, "Take a lock away", newBreak(v, loc))
	addGroup(root, "Look after the database", newDoctor(v, loc), newBench(v, loc), newProve(v, loc), newSchema(v))
	addGroup(root, otherGroup, newVersion(v), newMan(), newProveWorker())
	root.SetUsageFunc(showUsage)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		loc.warnOfPassword()
		return loc.findNamespace(cmd)
	}
	root.SetHelpCommand(helpCommand(root))
	root.SetHelpCommandGroupID(otherGroup)
	root.SetCompletionCommandGroupID(otherGroup)
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			refuseUnknownShell(c)
		}
	}
	// This replaces cobra's own flag, which has a -v.
	root.Flags().BoolVar(&showsVersion, "version", false, "show the version of pawl and its backends")
	return root
}

// otherGroup is the group of the commands about pawl itself.
const otherGroup = "Other commands"

func addGroup(root *cobra.Command, heading string, verbs ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: heading, Title: heading})
	for _, c := range verbs {
		c.GroupID, c.DisableFlagsInUseLine = heading, true
	}
	root.AddCommand(verbs...)
}

// refuseUnknownShell refuses a shell without completion. For such a shell, cobra would
// print its help, which the eval of the user's shell would run.
func refuseUnknownShell(completion *cobra.Command) {
	completion.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usageError(cmd, fmt.Errorf("missing shell; want %s", wordList(verbs(completion))))
		}
		return usageError(cmd, fmt.Errorf("no completion for %q; want %s", args[0], wordList(verbs(completion))))
	}
	completion.RunE = func(*cobra.Command, []string) error { return nil } // Args refuses all
}

// helpCommand replaces cobra's help command, and refuses an unknown topic.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return usageError(cmd.Root(), fmt.Errorf("unknown command %q", args[0]))
			}
			return topic.Help()
		},
	}
}

// verbs returns the subcommands that the help shows.
func verbs(parent *cobra.Command) (names []string) {
	for _, c := range parent.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" && c.Name() != "completion" {
			names = append(names, c.Name())
		}
	}
	return names
}

// wordList joins words for a sentence: "a, b or c".
func wordList(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// must panics on an error that only a mistake in this program can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
