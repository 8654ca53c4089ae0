package sim

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/driver"
)

// quorumBugs are bugs in the requests of a quorum, or in its use of the answers.
var quorumBugs = []bug{
	{"permits that are not counted again", "hold the name at the same time", 95, "quorum", inVotes(func(p *process, b *patched) {
		b.entries(func(e *driver.Entry) {
			e.Holders = slices.DeleteFunc(e.Holders, func(h driver.Holder) bool { return !p.owns(h.Owner) })
		})
	}), mostlyPermits},
	{"claims that have no tickets", "tickets: on node", 10, "quorum", inVotes(func(_ *process, b *patched) {
		b.claims(func(c *driver.Claim) { c.Ticket = 0 })
	}), nil},
	{"a claim gives way to a younger one", "gives back what it has", 67, "quorum", inVotes(func(p *process, b *patched) {
		b.entries(func(e *driver.Entry) {
			for i := range e.Waiters {
				if w := &e.Waiters[i]; !p.owns(w.Owner) {
					w.Owner.Client = aged(w.Owner.Client)
				}
			}
			for i := range e.Holders {
				if h := &e.Holders[i]; !p.owns(h.Owner) {
					h.Owner.Client = aged(h.Owner.Client)
				}
			}
		})
	}), nil},
	{"two claims change places in the queues of a quorum", "FIFO", 164, "quorum", inNode(func(b *patched, m *bugState) { plantSwappedWaiters(b, m) }), nil},
}

// inVotes plants a bug between a process' quorum and its nodes.
func inVotes(plant func(p *process, b *patched)) func() planted {
	return func() planted {
		return planted{quorum: func(p *process, nodes []driver.Driver) []driver.Driver {
			for i, n := range nodes {
				b := patch(n.(*link))
				plant(p, b)
				nodes[i] = b
			}
			return nodes
		}}
	}
}

func (p *process) owns(o driver.Owner) bool { return strings.HasSuffix(o.Client, p.id()) }

// aged makes a claim look like the first claim of all. Its tag is a letter, and then in
// base64 eight bytes with its ticket, and ten more.
func aged(client string) string {
	const size = 24
	tag, err := base64.RawURLEncoding.DecodeString(client[1 : 1+size])
	if err != nil {
		return client
	}
	clear(tag[:8])
	return client[:1] + base64.RawURLEncoding.EncodeToString(tag) + client[1+size:]
}

// mostlyPermits: many claims hold single permits of two for a long time.
func mostlyPermits(p *plan) {
	p.eachStep(func(s *step) {
		if s.verb == "lock" || s.verb == "try" {
			s.kind, s.weight, s.limit, s.name = "permits", 1, 2, p.names[0].name
		}
	})
}

// storeBugs are the bugs of engines with compare-and-swap.
var storeBugs = []bug{
	{"a swap that takes effect outside of its window", "says that", 599, "store", func() planted { return planted{noWindows: true} }, arrivesLate},
	{"a swap that does not compare", "hold the name at the same time", 1, "store", func() planted { return planted{noVersions: true} }, nil},
}

// arrivesLate: claims are soon given up. Half of the requests arrive long after that, or
// never, and no other call changes the name meanwhile.
func arrivesLate(p *plan) {
	p.faults, p.weather = nil, foul(p.baseTTL)
	p.weather.slow, p.weather.lost = 50, 30
	p.processes = p.processes[:1]
	p.eachStep(func(s *step) { s.timeout = p.baseTTL / 20 })
}
