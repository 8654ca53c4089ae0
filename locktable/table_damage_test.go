package locktable_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// A row that cannot be decoded must not count as a free name.
func TestADamagedEntryIsAPermanentErrorAndNeverGranted(t *testing.T) {
	table := newByteTable()
	d := table.client("1")
	damaged := []byte(version + " damaged")
	table.rows["job"] = slices.Clone(damaged)
	for op, err := range callAll(t.Context(), d) {
		var e *driver.Error
		if !errors.As(err, &e) || !e.Permanent || string(e.Op) != op || e.Name != "job" || !errors.As(err, new(*locktable.CorruptError)) {
			t.Errorf("%s is answered %#v", op, err)
		}
	}
	if _, err := d.Acquire(t.Context(), *withForce(mutex("a"))); !errors.Is(err, driver.ErrUnavailable) {
		t.Errorf("a forced claim: %v", err)
	}
	equal(t, "row", string(table.rows["job"]), string(damaged))
}

// The error is permanent even if the table wraps it.
func TestAWrappedCorruptErrorIsPermanent(t *testing.T) {
	table := newByteTable()
	d := table.client("1")
	for _, table.err = range []error{
		fmt.Errorf("row 5: %w", &locktable.CorruptError{Problem: "x"}),
		&driver.Error{Backend: "shelf", Err: &locktable.CorruptError{Problem: "x"}},
	} {
		_, err := d.Acquire(t.Context(), *mutex("a"))
		if e := (*driver.Error)(nil); !errors.As(err, &e) || !e.Permanent {
			t.Errorf("Acquire returns %#v, want a permanent error", err)
		}
	}
}

func TestADamagedEntryDoesNotPreventOtherRenewals(t *testing.T) {
	table := newByteTable()
	d, ctx := table.client("1"), t.Context()
	var leases []driver.LeaseRef
	for i := range 64 {
		c := with(mutex("a"), func(c *driver.Claim) { c.Name = fmt.Sprint("job", i) })
		must(d.Acquire(ctx, *c))(t)
		leases = append(leases, driver.LeaseRef{Name: c.Name, Token: c.Token, TTL: ttl})
	}
	damaged := []int{0, 37}
	for _, i := range damaged {
		table.rows[leases[i].Name] = []byte("?")
	}
	table.now, table.updates = table.now.Add(ttl/2), 0
	answers, err := d.Renew(ctx, leases)
	if err != nil || len(answers) != len(leases) {
		t.Fatalf("Renew returns %v, %v", answers, err)
	}
	for i, err := range answers {
		var e *driver.Error
		switch {
		case !slices.Contains(damaged, i) && err != nil:
			t.Errorf("renewal of %s: %v", leases[i].Name, err)
		case slices.Contains(damaged, i) && (!errors.As(err, &e) || !e.Permanent || e.Name != leases[i].Name):
			t.Errorf("renewal of %s, which is damaged: %v", leases[i].Name, err)
		}
		if seen, err := d.Inspect(ctx, leases[i].Name); err == nil && seen.Holders[0].ExpiresIn != ttl {
			t.Errorf("%s expires in %v", seen.Name, seen.Holders[0].ExpiresIn)
		}
	}
	if table.updates > 30 {
		t.Errorf("Renew took %d batches", table.updates)
	}
}

// A damaged entry does not hide the entries behind it.
func TestAListContinuesAfterADamagedEntry(t *testing.T) {
	table := newByteTable()
	d, ctx := table.client("1"), t.Context()
	for _, name := range []string{"a", "b", "c", "d", "elsewhere"} {
		must(d.Acquire(ctx, *with(mutex("a"), func(c *driver.Claim) { c.Name = name })))(t)
	}
	list := func(prefix string) (lines []string) {
		for e, err := range d.List(ctx, prefix) {
			if err != nil && len(e.Holders)+len(e.Waiters) > 0 {
				t.Errorf("List yields an error with %+v", e)
			}
			lines = append(lines, fmt.Sprintf("%s %v", e.Name, err))
		}
		return lines
	}
	if got := list("else"); !slices.Equal(got, []string{"elsewhere <nil>"}) { // the table yields all names
		t.Errorf("the list of a prefix is %q", got)
	}
	table.rows["b"], table.rows["d"] = []byte("?"), []byte("?")
	corruptLine := func(name string) string {
		return fmt.Sprintf("%s pawl: shelf: list %q: %s", name, name, anotherVersion())
	}
	if got, want := list(""), []string{"a <nil>", corruptLine("b"), "c <nil>", corruptLine("d"), "elsewhere <nil>"}; !slices.Equal(got, want) {
		t.Errorf("the list is %q, want %q", got, want)
	}
	table.err = io.ErrUnexpectedEOF
	if got := list(""); len(got) != 1 || !strings.HasPrefix(got[0], " pawl: shelf: list: unexpected EOF") {
		t.Errorf("if the table fails, the list is %q", got)
	}
}

// anotherVersion returns the error about an entry that begins with "?".
func anotherVersion() string {
	return fmt.Sprintf("the stored entry is damaged, or written by another version: its first byte is 0x3f, not %#x", (&locktable.Entry{}).Append(nil)[0])
}

func TestDamagedCountsDamagedEntries(t *testing.T) {
	table := newByteTable()
	d := table.client("1")
	if found := locktable.Damaged(t.Context(), d); len(found) > 0 {
		t.Errorf("without a damaged entry: %v", found)
	}
	for i := range 7 {
		table.rows[fmt.Sprint("job", i)] = []byte("?")
	}
	found := locktable.Damaged(t.Context(), d)
	want := `7 cannot be read, and these names cannot be locked: "job0", "job1", "job2", "job3", "job4" and 2 more; ` +
		anotherVersion()
	if len(found) != 1 || found[0].Severity != "error" || found[0].Detail != want || found[0].Advice == "" {
		t.Errorf("Damaged returns %+v", found)
	}
	table.err = &driver.Error{Backend: "shelf", Err: io.ErrUnexpectedEOF, Hint: "look at the shelf"}
	found = locktable.Damaged(t.Context(), d)
	if len(found) != 1 || found[0].Severity != "error" || found[0].Detail != "they cannot be read: unexpected EOF" || found[0].Advice != "look at the shelf" {
		t.Errorf("if the table fails, Damaged returns %+v", found)
	}
}
