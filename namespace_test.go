package pawl_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/memlock"
)

func TestANamespaceSeesOnlyItsOwnNames(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, locks *pawl.Client, _ *network) {
		acme, other := locks.Namespace("acme"), locks.Namespace("other")
		inner := acme.Namespace("eu")
		for _, c := range []*pawl.Client{locks, acme, other, inner} {
			must(c.Mutex("x").TryLock(background))(t)
		}
		_, err := acme.Mutex("x").TryLock(background) // the error has the stored name, which shows the tenant
		if held, ok := errors.AsType[*pawl.HeldError](err); !ok || held.Name != "@acme:x" {
			t.Errorf("TryLock returns %v, want a HeldError of @acme:x", err)
		}
		names := func(c *pawl.Client, prefix string) (all []string) {
			for e, err := range c.List(background, prefix) {
				noError(t, err)
				all = append(all, e.Name)
			}
			return all
		}
		for c, want := range map[*pawl.Client][]string{
			locks: {"@acme/eu:x", "@acme:x", "@other:x", "x"}, acme: {"x"}, other: {"x"}, inner: {"x"},
		} {
			if got := names(c, ""); !slices.Equal(got, want) {
				t.Errorf("List yields %q, want %q", got, want)
			}
		}
		if got := names(acme, "y"); got != nil {
			t.Errorf("List yields %q for a prefix that no name has", got)
		}
		e, err := acme.Inspect(background, "x")
		if noError(t, err); e.Name != "x" || len(e.Holders) != 1 {
			t.Errorf("Inspect returns %+v, want x with one holder", e)
		}
		noError(t, acme.Break(background, "x", e.Holders[0].Fence, noDelay))
		noError(t, acme.WaitUntilFree(background, "x"))
		isError(t, other.Break(background, "@acme:x", e.Holders[0].Fence, noDelay), pawl.ErrNoSuchLease)
		for e, err := range inner.Watch(background, "x") {
			if noError(t, err); e.Name != "x" || len(e.Holders) != 1 {
				t.Errorf("Watch yields %+v, want x with one holder", e)
			}
			break
		}
	})
}

func TestEachKindOfLockStaysInItsNamespace(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, locks *pawl.Client, net *network) {
		acme, other := locks.Namespace("acme"), locks.Namespace("other")
		lease := must(acme.Mutex("x").Lock(background))(t)
		if lease.Name() != "x" || lease.StoredName() != "@acme:x" || acme.StoredName("x") != "@acme:x" || locks.StoredName("x") != "x" {
			t.Errorf("the lease is of %q and %q, and the clients store %q and %q", lease.Name(), lease.StoredName(), acme.StoredName("x"), locks.StoredName("x"))
		}
		for _, name := range []string{"x", "@acme:x"} {
			if fence, ok := pawl.FenceOf(lease.Context(), name); !ok || fence != lease.Fence() {
				t.Errorf("the fence of %q is %d, %v", name, fence, ok)
			}
		}
		handle := must(lease.Detach(background))(t)
		_, err := other.Attach(background, handle)
		isError(t, err, pawl.ErrInvalid)
		for _, c := range []*pawl.Client{acme, locks} {
			lease := must(c.Attach(background, handle))(t)
			want := map[*pawl.Client]string{acme: "x", locks: "@acme:x"}[c]
			wantEqual(t, "the name of the attached lease", lease.Name(), want)
			handle, err = lease.Detach(background)
			noError(t, err)
		}
		lease = must(acme.Attach(background, handle))(t)
		forced := must(locks.Mutex("@acme:x").ForceLock(background))(t) // an operator, by the stored name
		if lost, ok := errors.AsType[*pawl.LostError](lease.Release(background)); !ok || lost.Name != "@acme:x" {
			t.Errorf("Release returns %v, want the loss of @acme:x", lost)
		}
		noError(t, forced.Release(background))

		before := net.count("acquire all")
		both := must(pawl.All(acme.Mutex("x"), other.Mutex("x"), locks.Mutex("x")).Lock(background))(t)
		if a, b := both.Fence("@acme:x"), both.Fence("@other:x"); a == 0 || b == 0 {
			t.Errorf("the fences are %d and %d, want no 0", a, b)
		}
		wantEqual(t, "steps", net.count("acquire all")-before, 1)
		noError(t, both.Release(background))

		leads := make(chan struct{})
		go acme.Election("lead").Run(background, func(ctx context.Context) error { close(leads); <-ctx.Done(); return nil })
		<-leads
		if l, err := acme.Election("lead").Leader(background); err != nil || l.Term == 0 {
			t.Errorf("the leader in acme is %+v, %v; want a leader", l, err)
		}
		if l, err := other.Election("lead").Leader(background); err != nil || l.Term != 0 {
			t.Errorf("the leader in other is %+v, %v; want none", l, err)
		}
		f := func(context.Context) error { return nil }
		for _, c := range []*pawl.Client{acme, other} {
			once := c.Once("tick")
			wantRun(t, true)(once.Do(background, "1", f))
			wantRun(t, false)(once.Do(background, "1", f))
			wantEqual(t, "the name of the lock", once.LockName("1"), "tick")
		}
	})
}

func TestABadNamespaceIsRefused(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, locks *pawl.Client, net *network) {
		long := strings.Repeat("n", 250)
		for what, c := range map[string]*pawl.Client{
			"empty": locks.Namespace(""), "no UTF-8": locks.Namespace("\xff"), "control character": locks.Namespace("a\x00"),
			"too long": locks.Namespace(strings.Repeat("n", 256)), "inside one": locks.Namespace("").Namespace("good"),
			"with the name": locks.Namespace(long),
			"of no client":  (*pawl.Client)(nil).Namespace("a"), "of a zero client": (&pawl.Client{}).Namespace("a"),
		} {
			isError(t, errOf(c.Mutex("name").Lock(background)), pawl.ErrInvalid)
			isError(t, errOf(c.Inspect(background, "name")), pawl.ErrInvalid)
			isError(t, c.Break(background, "name", 1, &pawl.BreakOptions{Delay: time.Second}), pawl.ErrInvalid)
			isError(t, errOf(pawl.All(c.Mutex("name"), c.Mutex("b")).TryLock(background)), pawl.ErrInvalid)
			for _, err := range c.Watch(background, "name") {
				isError(t, err, pawl.ErrInvalid)
			}
			if what != "with the name" {
				for _, err := range c.List(background, "") {
					isError(t, err, pawl.ErrInvalid)
				}
			}
		}
		isError(t, errOf(locks.Namespace("a").Mutex("").Lock(background)), pawl.ErrInvalid)
		wantEqual(t, "requests", net.count("acquire")+net.count("inspect"), 0)
		isError(t, locks.Namespace("a").Close(), pawl.ErrInvalid)
		isError(t, locks.Namespace("a").Shutdown(background), pawl.ErrInvalid)
		must(locks.Mutex("x").Lock(background))(t)
	})
}

// Different names, and equal names of different namespaces, have different stored names,
// and List shows no name of another namespace.
func TestNamespacesNeverShareAName(t *testing.T) {
	locks := must(pawl.New(memlock.New(nil), nil))(t)
	defer locks.Close()
	part := rapid.StringOfN(rapid.RuneFrom([]rune("ab@:/%23AF#")), 1, 6, -1)
	path := rapid.SliceOfN(part, 1, 3)
	clientIn := func(path []string) *pawl.Client {
		c := locks
		for _, p := range path {
			c = c.Namespace(p)
		}
		return c
	}
	rapid.Check(t, func(t *rapid.T) {
		path1, name1 := path.Draw(t, "path"), part.Draw(t, "name")
		path2, name2 := path.Draw(t, "other path"), part.Draw(t, "other name")
		stored1, stored2 := clientIn(path1).StoredName(name1), clientIn(path2).StoredName(name2)
		samePath := slices.Equal(path1, path2)
		if same := samePath && name1 == name2; same != (stored1 == stored2) {
			t.Fatalf("%q and %q are stored as %q and %q", append(path1, name1), append(path2, name2), stored1, stored2)
		}
		if prefix := clientIn(path2).StoredName(""); samePath != strings.HasPrefix(stored1, prefix) {
			t.Fatalf("the namespace %q with the prefix %q lists %q: %v", path2, prefix, stored1, !samePath)
		}
	})
}

func TestOptionsNamespaceMakesAClientOfThatNamespace(t *testing.T) {
	memory := memlock.NewMemory(nil)
	locks := must(pawl.New(memory.Driver(), &pawl.Options{Namespace: "prod"}))(t)
	root := must(pawl.New(memory.Driver(), nil))(t)
	defer root.Close()
	must(locks.Namespace("acme").Mutex("x").Lock(background))(t)
	lease := must(locks.Mutex("x").Lock(background))(t)
	if names := []string{lease.Name(), lease.StoredName(), locks.Namespace("acme").StoredName("x")}; !slices.Equal(names, []string{"x", "@prod:x", "@prod/acme:x"}) {
		t.Errorf("the names are %q", names)
	}
	isError(t, errOf(root.Namespace("prod").Mutex("x").TryLock(background)), pawl.ErrHeld)
	noError(t, locks.Close())
	must(root.Namespace("prod").Mutex("x").TryLock(background))(t)
	isError(t, errOf(pawl.New(memory.Driver(), &pawl.Options{Namespace: "\x00"})), pawl.ErrInvalid)
}

// A tenant may choose a name that has the form of another tenant's stored name.
func TestFenceOfFindsNoLeaseOfAnotherNamespace(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, locks *pawl.Client, _ *network) {
		mine, theirs := locks.Namespace("t2").Mutex("x"), locks.Namespace("t1").Mutex("@t2:x")
		for what, c := range map[string]struct {
			all   *pawl.Group
			found map[string]string // the stored name of the lease that each name finds, or ""
		}{
			"both":   {pawl.All(mine, theirs), map[string]string{"x": "@t2:x", "@t2:x": "@t2:x", "@t1:@t2:x": "@t1:@t2:x"}},
			"theirs": {pawl.All(theirs), map[string]string{"x": "", "@t2:x": "", "@t1:@t2:x": "@t1:@t2:x"}},
		} {
			noError(t, c.all.Do(background, func(ctx context.Context) error {
				for name, want := range c.found {
					got := ""
					if lease, ok := pawl.LeaseOf(ctx, name); ok {
						got = lease.StoredName()
					}
					if fence, ok := pawl.FenceOf(ctx, name); got != want || ok != (want != "") || fence > 0 != ok {
						t.Errorf("%s: %q finds the lease of %q, with fence %d; want the lease of %q", what, name, got, fence, want)
					}
				}
				return nil
			}))
			group := must(c.all.Lock(background))(t)
			for name, want := range c.found {
				if fence := group.Fence(name); fence > 0 != (want != "") {
					t.Errorf("%s: in the group the fence of %q is %d", what, name, fence)
				}
			}
			noError(t, group.Release(background))
		}
		noError(t, locks.Mutex("x").Do(background, func(ctx context.Context) error {
			return mine.Do(ctx, func(ctx context.Context) error {
				if fence, ok := pawl.FenceOf(ctx, "x"); ok || fence > 0 {
					t.Errorf("with two leases on x, one without a namespace, FenceOf returns %d; want 0", fence)
				}
				return nil
			})
		}))
	})
}
