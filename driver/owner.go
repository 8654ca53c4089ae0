package driver

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pawl-go/pawl/internal/visible"
)

// Owner identifies a holder or a waiter to people. In JSON it has the keys that
// `pawl show --json` prints.
type Owner struct {
	Client string            `json:"client"` // a client's id, the same for all its claims
	Host   string            `json:"host"`   // where that client runs
	PID    int               `json:"pid"`    // the client's process id
	Labels map[string]string `json:"labels"` // the user's description of the claim; at most MaxLabels
}

// Validate refuses an owner that some backend could not store and return unchanged.
func (o *Owner) Validate() error {
	for _, field := range [...]struct{ name, text string }{{"client", o.Client}, {"host", o.Host}} {
		if len(field.text) > MaxLabelSize || !utf8.ValidString(field.text) {
			return invalid(field.name, fmt.Sprintf("%.40q has %d bytes", field.text, len(field.text)), fmt.Sprintf("at most %d bytes of UTF-8", MaxLabelSize))
		}
	}
	if o.PID < 0 || o.PID > math.MaxInt32 {
		return invalid("pid", fmt.Sprintf("is %d", o.PID), fmt.Sprintf("0 to %d", math.MaxInt32))
	}
	if len(o.Labels) > MaxLabels {
		return invalid("labels", fmt.Sprintf("are %d", len(o.Labels)), fmt.Sprintf("at most %d", MaxLabels))
	}
	for k, v := range o.Labels {
		if k == "" || len(k) > MaxLabelSize || len(v) > MaxLabelSize || !utf8.ValidString(k) || !utf8.ValidString(v) {
			return invalid("label", fmt.Sprintf("%.40q has %d bytes in its key and %d in its value", k, len(k), len(v)),
				fmt.Sprintf("1 to %d bytes of UTF-8 in the key, at most %d in the value", MaxLabelSize, MaxLabelSize))
		}
	}
	return nil
}

// Clone returns a copy of the owner with labels of its own.
func (o Owner) Clone() Owner {
	o.Labels = maps.Clone(o.Labels)
	return o
}

// Equal reports whether two owners have the same fields. Nil and empty Labels are equal.
func (o Owner) Equal(p Owner) bool {
	return o.Client == p.Client && o.Host == p.Host && o.PID == p.PID && maps.Equal(o.Labels, p.Labels)
}

// String returns the owner for messages: the text of ShortString, and the details. It
// quotes text that could confuse a terminal, because other people wrote it.
func (o Owner) String() string {
	text := o.ShortString()
	for _, d := range o.Details() {
		text += " " + safeText(d[0]) + "=" + safeText(d[1])
	}
	return text
}

// Details returns the labels as keys and texts, sorted by key. ShortString omits them.
func (o Owner) Details() (all [][2]string) {
	for _, k := range slices.Sorted(maps.Keys(o.Labels)) {
		all = append(all, [2]string{k, o.Labels[k]})
	}
	return all
}

// ShortString returns the owner without its details: host:pid, or "id at host:pid" if the
// client was given an id, or the id if there is no host.
func (o Owner) ShortString() string {
	where := safeText(o.Host)
	if o.PID != 0 {
		where = fmt.Sprintf("%s:%d", where, o.PID)
	}
	switch {
	case where == "":
		return cmp.Or(safeText(o.Client), "somebody")
	case randomID.MatchString(o.Client):
		return where
	}
	return safeText(o.Client) + " at " + where // the user chose this id, and searches for it
}

// randomID matches an empty id, and a random id of pawl.New. People know neither.
var randomID = regexp.MustCompile(`^(~[0-9a-f]{16})?$`)

// safeText returns s as it is if a terminal shows it as it is, and quoted otherwise.
// Other people write labels and host names, and these must not move the cursor, hide
// text, or forge a line or a label.
func safeText(s string) string {
	if visible.Text(s) != s || strings.ContainsAny(s, "\" =\uFFFD") {
		return visible.Text(strconv.QuoteToGraphic(s))
	}
	return s
}
