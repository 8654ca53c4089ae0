package report

import (
	"unicode/utf8"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// A claim is a history.Claim with numbers in place of its texts.
type claim struct {
	id, group                                                         int64
	asked, answered, got, believed, lost, told, released, freed, died int64
	used                                                              int64 // its last write
	fence                                                             uint64
	name                                                              int32 // in story.names
	mode, how, answer, problem, why, release                          int32 // in story.texts
	worker, life, client, weight, writes                              int32
	end                                                               int32
}

// How a claim ended. The script has the same numbers.
const (
	endNone     = iota // it was not granted
	endReleased        // released, and held until then
	endLost            // lost, and the holder knows it
	endDied            // its process ended first
	endUnknown         // nothing says how the lease ended
	endAsking          // it may have been granted: there is no answer
)

// longText is the length after which the report cuts a claim's text off.
const longText = 400

func short(s string) string {
	if len(s) <= longText {
		return s
	}
	cut := longText
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// pack notes the texts of a claim.
func (s *story) pack(c *history.Claim) claim {
	text := func(t string) int32 { return s.texts.add(short(t)) }
	return claim{
		id: c.ID, group: c.Group,
		asked: c.Asked, answered: c.Answered, got: c.Got, believed: c.Believed, lost: c.Lost, told: c.Told,
		released: c.Released, freed: c.Freed, died: c.Died,
		fence: c.Fence, name: s.names.add(c.Name),
		mode: text(c.Mode), how: text(c.How), answer: text(c.Answer), problem: text(c.Error), why: text(c.Why),
		release: text(c.Release),
		worker:  int32(c.Worker), life: int32(c.Life), client: int32(c.Client), weight: int32(c.Weight),
		end: endOf(c),
	}
}

func endOf(c *history.Claim) int32 {
	switch {
	case c.Got == 0 && c.Answer == history.Unknown:
		return endAsking
	case c.Got == 0:
		return endNone
	case c.Lost != 0, c.Told != 0, c.Release == history.Late:
		return endLost
	case c.Release == history.OK:
		return endReleased
	case c.Died != 0:
		return endDied
	}
	return endUnknown
}

// odd reports whether a claim ended in another way than most.
func (c *claim) odd() bool { return c.end != endNone && c.end != endReleased }

// over is the last time of a claim.
func (c *claim) over() int64 {
	return max(c.asked, c.answered, c.got, c.believed, c.lost, c.told, c.released, c.freed, c.died, c.used)
}
