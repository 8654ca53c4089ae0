package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
	"github.com/pawl-go/pawl/driver"
)

// location is where the locks are: --url, else PAWL_URL or the file that PAWL_URL_FILE
// names, else the file of this user.
type location struct {
	v         *voice
	url       string
	fromFile  string // what PAWL_URL_FILE led to; it is read once, for it may be a pipe
	namespace string // --namespace, else PAWL_NAMESPACE; empty for none
}

const (
	urlVariable     = "PAWL_URL"
	urlFileVariable = "PAWL_URL_FILE"

	namespaceVariable = "PAWL_NAMESPACE"
)

// isMemory reports whether the locks are in the memory of this process, for tests.
func isMemory(where string) bool { return strings.HasPrefix(where, "mem:") }

// find is the URL to open, and whether it is the one that nobody named.
func (l *location) find(cmd *cobra.Command) (where string, byDefault bool, err error) {
	if cmd.Flags().Changed("url") {
		if l.url == "" { // a variable that was never set; a file of one's own would keep nobody out
			return "", false, usage(cmd, errors.New("--url is empty"))
		}
		return l.url, false, known(cmd, l.url)
	}
	where, set := os.LookupEnv(urlVariable)
	_, inFile := os.LookupEnv(urlFileVariable)
	switch {
	case set && inFile:
		return "", false, usage(cmd, errors.New(urlVariable+" and "+urlFileVariable+" are mutually exclusive"))
	case set && where == "": // a secret that is missing
		return "", false, usage(cmd, errors.New(urlVariable+" is empty; set it to a URL, or unset it for the default file"))
	case inFile:
		if where, err = l.readURL(); err != nil {
			return "", false, usage(cmd, fmt.Errorf("%s: %w", urlFileVariable, err))
		}
		return where, false, known(cmd, where)
	case set:
		return where, false, known(cmd, where)
	}
	file, err := defaultFile()
	if err != nil {
		return "", false, usage(cmd, errors.New("no home directory for the default file; set --url or "+urlVariable))
	}
	return fileURL(file), true, nil
}

// findNamespace refuses a namespace that is empty: with a variable that was never set,
// all tenants would have the same names.
func (l *location) findNamespace(cmd *cobra.Command) error {
	value, set := os.LookupEnv(namespaceVariable)
	switch {
	case cmd.Flags().Changed("namespace"):
		if l.namespace == "" {
			return usage(cmd, errors.New("--namespace is empty"))
		}
	case set && value == "":
		return usage(cmd, errors.New(namespaceVariable+" is empty; set it to a namespace, or unset it for none"))
	default:
		l.namespace = value
	}
	return nil
}

// inside is a stored name as it is in the namespace.
func (l *location) inside(stored string) string {
	if _, name, found := strings.Cut(stored, ":"); found && l.namespace != "" {
		return name
	}
	return stored
}

// readURL is the first line of the file that PAWL_URL_FILE names, such as a mounted
// secret. Its errors show nothing of what the file has.
func (l *location) readURL() (string, error) {
	path := os.Getenv(urlFileVariable)
	switch {
	case l.fromFile != "":
		return l.fromFile, nil
	case path == "":
		return "", errors.New("the variable is empty; want the path of a file that has a URL")
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("cannot read %s: %w", words.Plain(path), cause(err))
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return "", fmt.Errorf("cannot read %s: %w", words.Plain(path), cause(err))
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if l.fromFile = strings.TrimSpace(line); l.fromFile == "" {
		return "", fmt.Errorf("the first line of %s is empty; want a URL there", words.Plain(path))
	}
	return l.fromFile, nil
}

// warn says on a terminal that a password in --url is seen by all who can list processes.
func (l *location) warn() {
	u, err := driver.ParseURL(l.url)
	if err != nil || !term.IsTerminal(int(os.Stderr.Fd())) {
		return
	}
	if _, secret := u.User.Password(); secret || u.Query().Has("sentinel_password") {
		l.v.warn("everyone who can list processes on this host sees the password in --url; %s hides it", urlVariable)
	}
}

// known refuses a URL that no backend of this build is for. The library would say which
// package to import.
func known(cmd *cobra.Command, where string) error {
	scheme, rest, ok := strings.Cut(where, ":")
	switch {
	case !ok: // a path, mostly; what else it is may be a password
		return usage(cmd, fmt.Errorf("a URL begins with one of %s; for a file, use sqlite:/path/locks.db", strings.Join(backends(), " ")))
	case slices.Contains(backends(), strings.ToLower(scheme)+":"):
		return nil
	case strings.Contains(where, "@") && !strings.HasPrefix(rest, "//"): // it may be a user, or a password
		return usage(cmd, fmt.Errorf("no backend for this URL; want one of %s", strings.Join(backends(), " ")))
	}
	return usage(cmd, fmt.Errorf("no backend for URLs that begin with %q; want one of %s", scheme+":", strings.Join(backends(), " ")))
}

// defaultFile is the file of this user, as the XDG base directory specification says:
// what is no absolute path does not count.
func defaultFile() (string, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "pawl", "locks.db"), nil
}

func fileURL(path string) string {
	slashed := (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()
	return "sqlite:" + slashed // C:/... is no path to net/url, but opaque, and sqlitelock takes that too
}

// existing is the URL for a verb that only looks, or breaks: what a slip of the pen names
// shall not be made, and be taken for a place where nobody holds anything. Only a file
// can be made by opening it.
func existing(where string) string {
	u, err := url.Parse(where)
	if err != nil || u.Scheme != "sqlite" {
		return where // what is wrong with it, the library says
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return where
	}
	if query.Has("create") {
		query.Del("create")
		u.RawQuery = query.Encode()
	}
	u.RawQuery = strings.TrimPrefix(u.RawQuery+"&create=false", "&") // last: an error may name what is before a mistake
	return u.String()
}

// unusedError says that nothing was ever locked in the default file.
type unusedError struct{ file string }

func (e *unusedError) Error() string {
	return "nothing was ever locked here: " + words.Plain(e.file) + " does not exist"
}

// open opens a client that only looks, or breaks.
func (l *location) open(ctx context.Context, cmd *cobra.Command) (*pawl.Client, error) {
	where, byDefault, err := l.find(cmd)
	if err != nil {
		return nil, err
	}
	c, err := pawl.Open(ctx, existing(where), &pawl.Options{Namespace: l.namespace})
	if byDefault && errors.Is(err, fs.ErrNotExist) {
		if file, err := defaultFile(); err == nil {
			return nil, &unusedError{file}
		}
	}
	return c, err
}

// closeSoon closes the client, and gives a backend that does not answer only so long.
func closeSoon(c *pawl.Client) error { return closeWithin(c, lastWords) }

// closeWithin gives it half of the time. When that is over, what is left is released once
// more, which takes some time of its own; we end after all of it, and the client with us.
func closeWithin(c *pawl.Client, d time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), d/2)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- c.Shutdown(ctx) }()
	select {
	case err := <-closed:
		return err
	case <-time.After(d):
		return context.DeadlineExceeded
	}
}
