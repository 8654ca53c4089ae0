package drivertest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pawl-go/pawl/driver"
)

// foreignNames have characters that encodings store differently or lack, or whose bytes
// are invalid, a quote or a backslash in another encoding.
var foreignNames = []string{"ascii", "gr\u00f6\u00dfe", "\u0160\u0141\u20ac", "\u4e94\u8868\u80fd", "\u304a\u00c1\u00cd", "\U0001f512", `a'b"c\d\\`}

// testSessions tests that clients whose sessions differ share the names.
func testSessions(s *suite) {
	s.timeless = true
	who := driver.Owner{Client: "drivertest", Host: "caf\u00e9-\u4e94", PID: 1, Labels: map[string]string{"gr\u00fc\u00df": "\u0160\U0001f512"}}
	for i := range s.Sessions {
		s.test(fmt.Sprintf("Session%dSeesTheNamesOfTheOthers", i+1), func(k *kit) {
			one := k.openAs(s.Sessions[i])
			others := []*client{k.a}
			for _, open := range s.Sessions[i+1:] {
				others = append(others, k.openAs(open))
			}
			for n, other := range others {
				for _, foreign := range foreignNames {
					name := fmt.Sprintf("%s%d/%s", k.name, n, foreign)
					k.checkAgreement(one, other, name, who)
					k.checkAgreement(other, one, name, who)
				}
			}
		})
	}

	if s.canList {
		s.test("AllListTheSameNames", func(k *kit) {
			var want []string
			for _, foreign := range foreignNames {
				want = append(want, k.name+foreign)
				k.a.wantGranted(k.mutex(named(k.name+foreign), owner(who)))
			}
			slices.Sort(want)
			for i, open := range s.Sessions {
				k.b = k.openAs(open)
				if got := k.list(k.name); !slices.Equal(got, want) {
					k.Errorf("session %d lists in byte order:\n%s\nwant:\n%s", i+1, quoted(got), quoted(want))
				}
			}
		})
	}

	if s.AtomicAll {
		s.test("ManyNamesAtOnceAreTheSameNames", func(k *kit) {
			for i, open := range s.Sessions {
				one := k.openAs(open)
				var claims []driver.Claim
				var leases []driver.LeaseRef
				for _, foreign := range foreignNames {
					claims = append(claims, k.mutex(named(fmt.Sprintf("%s%d/%s", k.name, i, foreign)), owner(who)))
					leases = append(leases, lease(claims[len(claims)-1]))
				}
				one.wantAllGranted(claims)
				for _, c := range claims {
					k.a.wantHeld(k.mutex(named(c.Name)))
				}
				for j, err := range slices.Concat(one.renewAll(leases...), k.a.renewAll(leases...)) {
					if err != nil {
						k.Errorf("session %d: Renew of %+q: %v; want it held", i+1, leases[j%len(leases)].Name, err)
					}
				}
			}
		})
	}
}

// openAs opens a client with an Open function of the harness.
func (k *kit) openAs(open func(t testing.TB) driver.Driver) *client {
	k.Helper()
	return k.addClient(open(k.T))
}

// checkAgreement requires that a and b see the same state of a name while they lock it.
func (k *kit) checkAgreement(a, b *client, name string, who driver.Owner) {
	k.Helper()
	holder, waiter := k.mutex(named(name), owner(who), value("\u00e4\x00\xff\\")), k.mutex(named(name), owner(who), queue(long))
	g := a.wantGranted(holder)
	refused := b.wantHeld(k.mutex(named(name)))
	if h := refused.Holder; refused.Name != name || h.Fence != g.Fence || !h.Owner.Equal(who) {
		k.Errorf("%+q is held by %+v; for the other client %+q is held by %+v", name, g, refused.Name, h)
	}
	b.wantPlace(waiter, 1)
	b.wantValueOf(name, "\u00e4\x00\xff\\", g.Fence)
	if e := b.entry(name); e.Name != name || len(e.Holders) != 1 || len(e.Waiters) != 1 || !e.Waiters[0].Owner.Equal(who) {
		k.Errorf("Inspect(%+q) = %+v", name, e)
	}
	a.mustRenew(holder)
	b.mustRenew(holder) // the token names the lease, whichever client sends it
	a.mustRelease(holder)
	second := b.wantGranted(waiter)
	if second.Fence <= g.Fence {
		k.Errorf("%+q has the fence %d after %d", name, second.Fence, g.Fence)
	}
	if k.suite.canBreak {
		if err := a.Driver.(driver.LeaseBreaker).Break(k.ctx, name, second.Fence, 0, who); err != nil {
			k.Errorf("Break of %+q: %v", name, err)
		}
		k.wantBrokenBy(b.renew(waiter, long), who)
	} else {
		b.mustRelease(waiter)
	}
}
