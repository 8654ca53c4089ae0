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

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/access"
)

// location is the address of the locks: --url, otherwise PAWL_URL or the content of the
// file PAWL_URL_FILE, otherwise the file of this user.
type location struct {
	v           *output
	url         string // of --url
	urlFromFile string // of PAWL_URL_FILE, read once, because it may be a pipe
	namespace   string // --namespace, otherwise PAWL_NAMESPACE; empty for none
}

const (
	urlVariable     = "PAWL_URL"
	urlFileVariable = "PAWL_URL_FILE"

	namespaceVariable = "PAWL_NAMESPACE"
)

// isMemory reports whether the locks are in the memory of this process, for tests.
func isMemory(rawURL string) bool { return strings.HasPrefix(rawURL, "mem:") }

// findURL returns the URL to open, and whether it is the default.
func (l *location) findURL(cmd *cobra.Command) (rawURL string, byDefault bool, err error) {
	value, isSet := os.LookupEnv(urlVariable)
	_, isFileSet := os.LookupEnv(urlFileVariable)
	switch given := cmd.Flags().Changed("url"); {
	case given && l.url == "": // maybe from an unset variable; the default file is on this host only
		err = errors.New("--url is empty")
	case given:
		rawURL, err = l.url, checkScheme(l.url)
	case isSet && isFileSet:
		err = errors.New(urlVariable + " and " + urlFileVariable + " are mutually exclusive")
	case isSet && value == "": // maybe from a secret that does not exist
		err = errors.New(urlVariable + " is empty; set it to a URL, or unset it for the default file")
	case isFileSet:
		if rawURL, err = l.readURL(); err != nil {
			err = fmt.Errorf("%s: %w", urlFileVariable, err)
		}
	case isSet:
		rawURL, err = value, checkScheme(value)
	default:
		var file string
		if file, err = defaultFile(); err != nil {
			err = errors.New("no home directory for the default file; set --url or " + urlVariable)
		}
		rawURL, byDefault = fileURL(file), true
	}
	return rawURL, byDefault, usageError(cmd, err)
}

// findNamespace sets the namespace. It refuses an empty one, which may come from an unset
// variable, because all tenants would then share their names.
func (l *location) findNamespace(cmd *cobra.Command) error {
	value, isSet := os.LookupEnv(namespaceVariable)
	switch given := cmd.Flags().Changed("namespace"); {
	case given && l.namespace == "":
		return usageError(cmd, errors.New("--namespace is empty"))
	case given:
	case isSet && value == "":
		return usageError(cmd, errors.New(namespaceVariable+" is empty; set it to a namespace, or unset it for none"))
	case value == "":
		return nil
	default:
		l.namespace = value
	}
	_, err := l.namespaces()
	return usageError(cmd, err)
}

// namespaces returns the namespaces from the outermost to the innermost. --namespace
// separates them by "/". A "/" inside a prefix is written as %2F, as in stored names.
func (l *location) namespaces() ([]string, error) {
	var path []string
	for part := range strings.SplitSeq(l.namespace, "/") {
		prefix, err := url.PathUnescape(part)
		if err != nil || prefix == "" {
			return nil, fmt.Errorf("the namespace %q has a part that is empty, or has a wrong escape", l.namespace)
		}
		path = append(path, prefix)
	}
	return path, nil
}

func (l *location) options() *pawl.Options {
	o := &pawl.Options{}
	if l.namespace != "" {
		path, _ := l.namespaces() // findNamespace has checked it
		access.SetNamespaces(o, path)
	}
	return o
}

// withoutNamespace removes the namespace from a stored name.
func (l *location) withoutNamespace(stored string) string {
	if _, name, found := strings.Cut(stored, ":"); found && l.namespace != "" {
		return name
	}
	return stored
}

// byteOrderMark is at the beginning of files that some editors on Windows write.
const byteOrderMark = "\ufeff"

// readURL reads the first line of the file that PAWL_URL_FILE names, such as a mounted
// secret. Its errors show nothing of the file.
func (l *location) readURL() (string, error) {
	path := os.Getenv(urlFileVariable)
	switch {
	case l.urlFromFile != "":
		return l.urlFromFile, nil
	case path == "":
		return "", errors.New("the variable is empty; want the path of a file that has a URL")
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("cannot read %s: %w", words.QuoteIfNeeded(path), withoutPath(err))
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return "", fmt.Errorf("cannot read %s: %w", words.QuoteIfNeeded(path), withoutPath(err))
	}
	line, _, _ := strings.Cut(strings.TrimPrefix(string(text), byteOrderMark), "\n")
	switch line = strings.TrimSpace(line); {
	case line == "":
		return "", fmt.Errorf("the first line of %s is empty; want a URL there", words.QuoteIfNeeded(path))
	case !hasScheme(line): // do not show it: the file may be another one, with secrets
		return "", fmt.Errorf("the first line of %s is no URL of a backend; want one of %s%s", words.QuoteIfNeeded(path), strings.Join(urlPrefixes(), " "), leftOutHint)
	}
	l.urlFromFile = line
	return line, nil
}

// warnOfPassword warns on a terminal that other users can see a password in --url.
func (l *location) warnOfPassword() {
	u, err := driver.ParseURL(l.url)
	if err != nil || !l.v.onTerminal {
		return
	}
	if _, secret := u.User.Password(); secret || u.Query().Has("sentinel_password") {
		l.v.warn("everyone who can list processes on this host sees the password in --url; %s hides it", urlVariable)
	}
}

// hasScheme reports whether a URL has the scheme of a backend of this build.
func hasScheme(rawURL string) bool {
	scheme, _, _ := strings.Cut(rawURL, ":")
	return slices.Contains(urlPrefixes(), strings.ToLower(scheme)+":")
}

// checkScheme returns an error for a URL that no backend of this build accepts. The
// library's error would name a package to import.
func checkScheme(rawURL string) error {
	scheme, rest, ok := strings.Cut(rawURL, ":")
	switch {
	case !ok: // usually a path; if not, it may be a password
		return fmt.Errorf("a URL begins with one of %s; for a file, use sqlite:/path/locks.db", strings.Join(urlPrefixes(), " "))
	case hasScheme(rawURL):
		return nil
	case strings.Contains(rawURL, "@") && !strings.HasPrefix(rest, "//"): // it may have a user or a password
		return fmt.Errorf("no backend for this URL; want one of %s%s", strings.Join(urlPrefixes(), " "), leftOutHint)
	}
	return fmt.Errorf("no backend for URLs that begin with %q; want one of %s%s", scheme+":", strings.Join(urlPrefixes(), " "), leftOutHint)
}

// defaultFile returns the file of this user. The XDG base directory specification chooses
// its folder, and ignores a path that is not absolute.
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
	return "sqlite:" + slashed // net/url takes C:/... as opaque, which sqlitelock also accepts
}

// withoutCreate returns the URL for a command that takes no lock. This command must not
// create a SQLite file: with a typo in the path, every lock would be free in the new,
// empty file.
func withoutCreate(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil || u.Scheme != "sqlite" {
		return rawURL // the library returns the error
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return rawURL
	}
	if query.Has("create") {
		query.Del("create")
		u.RawQuery = query.Encode()
	}
	// An error may quote the URL up to the mistake in it. This parameter comes last, so
	// that no error quotes it: the user has not written it.
	u.RawQuery = strings.TrimPrefix(u.RawQuery+"&create=false", "&")
	return u.String()
}

// noDefaultFileError means that the default file does not exist: no lock was ever taken.
type noDefaultFileError struct{ file string }

func (e *noDefaultFileError) Error() string {
	return "nothing was ever locked here: " + words.QuoteIfNeeded(e.file) + " does not exist"
}

// openClient opens a client for a command that takes no lock.
func (l *location) openClient(ctx context.Context, cmd *cobra.Command) (*pawl.Client, error) {
	rawURL, byDefault, err := l.findURL(cmd)
	if err != nil {
		return nil, err
	}
	o := l.options()
	o.RetryFor = -1 // an operator wants to know now
	c, err := pawl.Open(ctx, withoutCreate(rawURL), o)
	if byDefault && errors.Is(err, fs.ErrNotExist) {
		if file, err := defaultFile(); err == nil {
			return nil, &noDefaultFileError{file}
		}
	}
	return c, err
}

// closeSoon closes the client, and does not wait long for a backend that does not answer.
func closeSoon(c *pawl.Client) error { return closeWithin(c, releaseTimeout) }

// closeWithin closes the client, and returns after d at the latest. Shutdown gets half of
// d, because it then tries once more to release the remaining leases.
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
