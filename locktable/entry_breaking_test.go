package locktable_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

func TestBreak(t *testing.T) {
	each(t, map[string]func(l *lab){
		"TakesTheLeaseAndSaysByWhom": func(l *lab) {
			g := l.granted(mutex("a"))
			l.ok(l.breaks(g.Fence, 5*sec, "boss"))
			l.said("lost a")
			l.sleep(sec)
			broken := brokenBy(l.t, l.renew("a", ttl))
			equal(l.t, "by", broken.By.String(), "boss")
			equal(l.t, "closed for", broken.ClosedFor, 4*sec)
			brokenBy(l.t, l.release("a", 0))
		},
		"KeepsTheNameClosedForTheDelay": func(l *lab) {
			g := l.granted(mutex("a"))
			l.refused(mutex("b"))
			l.ok(l.breaks(g.Fence, 5*sec, "boss"))
			l.state("| b")
			equal(l.t, "closed for", l.refused(mutex("b")).ClosedFor, 5*sec)
			l.sleep(5*sec - µs)
			equal(l.t, "retry", l.refused(mutex("b")).RetryAfter, µs)
			l.sleep(µs)
			l.granted(mutex("b"))
		},
		"WithoutDelayPassesTheNameOnAtOnce": func(l *lab) {
			g := l.granted(mutex("a"))
			l.refused(mutex("b"))
			l.ok(l.breaks(g.Fence, 0, "boss"))
			l.state("b |")
			l.said("lost a, granted b")
			equal(l.t, "closed for", brokenBy(l.t, l.renew("a", ttl)).ClosedFor, 0)
		},
		"FindsEveryFenceOfARunAndNoOther": func(l *lab) {
			for _, i := range []uint64{0, 4, 9} {
				g := l.granted(with(mutex("a"), func(c *driver.Claim) { c.Fences = 10 }))
				l.notHeld(l.breaks(g.Fence-1, 0, "boss"))
				l.notHeld(l.breaks(g.Fence+10, 0, "boss"))
				l.notHeld(l.breaks(0, 0, "boss"))
				l.notHeld(l.breaks(1<<64-1, 0, "boss"))
				l.ok(l.breaks(g.Fence+i, 0, "boss"))
				l.state("|")
			}
		},
		"FenceOfNobodyChangesNothing": func(l *lab) {
			g := l.granted(mutex("a"))
			l.notHeld(l.breaks(g.Fence+1, 5*sec, "boss"))
			equal(l.t, "changed", l.e.Changed, false)
			equal(l.t, "closed", l.e.Closed, 0)
		},
		"SaysForHowLongTheNameIsClosedForCertain": func(l *lab) {
			g := l.granted(mutex("a"))
			l.ok(l.breaks(g.Fence, 5*sec, "boss"))
			l.e.Uncertainty = sec // it may be as much later than it seems
			equal(l.t, "closed for", brokenBy(l.t, l.renew("a", ttl)).ClosedFor, 4*sec)
		},
		"TakesOneOfSeveralHolders": func(l *lab) {
			l.granted(reader("a"))
			g := l.granted(reader("b"))
			l.granted(reader("c"))
			l.ok(l.breaks(g.Fence, 0, "boss"))
			l.state("a c |")
		},
		"ReaderBesideTheLivingIsToldWhenTheNameOpens": func(l *lab) {
			l.granted(reader("a"))
			g := l.granted(reader("b"))
			l.ok(l.breaks(g.Fence, 5*sec, "boss"))
			equal(l.t, "retry", l.refused(reader("c")).RetryAfter, 5*sec) // not 30 s: a is not in the way
		},
		"NeverShortensAClosing": func(l *lab) {
			l.granted(reader("a"))
			l.granted(reader("b"))
			l.ok(l.breaks(l.e.Holders[0].Fence, time.Minute, "boss"))
			l.ok(l.breaks(l.e.Holders[0].Fence, sec, "boss"))
			equal(l.t, "closed for", l.refused(mutex("c")).ClosedFor, time.Minute)
		},
		"OfTwoBreaksTheLastIsTold": func(l *lab) {
			l.ok(l.breaks(l.granted(mutex("a")).Fence, 0, "first"))
			l.ok(l.breaks(l.granted(mutex("a")).Fence, 0, "second"))
			equal(l.t, "by", brokenBy(l.t, l.renew("a", ttl)).By.String(), "second")
		},
		"WordIsKeptUntilTheLeaseWouldHaveEnded": func(l *lab) {
			g := l.granted(mutex("a"))
			l.ok(l.breaks(g.Fence, 0, "boss"))
			l.sleep(ttl - µs)
			brokenBy(l.t, l.renew("a", ttl))
			l.sleep(µs)
			if err := l.renew("a", ttl); err != driver.ErrNoSuchLease {
				l.t.Fatalf("error %v, want the bare ErrNoSuchLease", err)
			}
			equal(l.t, "word", len(l.e.Broken), 0)
		},
	})
}

func TestForce(t *testing.T) {
	each(t, map[string]func(l *lab){
		"BreaksAllHoldersAndIsGranted": func(l *lab) {
			l.granted(reader("a"))
			last := l.granted(reader("b"))
			g := l.granted(forced(mutex("boss")))
			if g.Fence <= last.Fence {
				l.t.Fatalf("fence %d after %d", g.Fence, last.Fence)
			}
			l.state("boss |")
			l.said("lost a, lost b")
			equal(l.t, "by", brokenBy(l.t, l.renew("a", ttl)).By.String(), "boss")
			equal(l.t, "closed for", brokenBy(l.t, l.renew("b", ttl)).ClosedFor, 0)
		},
		"PassesTheQueueAndLeavesIt": func(l *lab) {
			l.granted(mutex("a"))
			l.refused(mutex("b"))
			l.refused(mutex("boss"))
			l.granted(forced(mutex("boss")))
			l.state("boss | b")
		},
		"LeavesRoomToTheHeadOfTheQueueAtOnce": func(l *lab) {
			l.granted(mutex("a"))
			l.refused(permits("b", 1, 4))
			l.refused(permits("c", 1, 4))
			l.granted(forced(permits("boss", 3, 4)))
			l.state("boss b | c")
			l.said("lost a, granted b")
		},
		"AskedAgainIsTheSameGrant": func(l *lab) {
			g := l.granted(forced(mutex("a")))
			equal(l.t, "second grant", l.granted(forced(mutex("a"))), g)
			equal(l.t, "word", len(l.e.Broken), 0)
		},
		"EndsTheMinimumHoldWithoutASignal": func(l *lab) {
			l.granted(mutex("a"))
			l.ok(l.release("a", time.Hour))
			l.granted(forced(mutex("boss")))
			l.said("")
			equal(l.t, "word", len(l.e.Broken), 0)
		},
		"OpensANameThatIsClosed": func(l *lab) {
			g := l.granted(mutex("a"))
			l.ok(l.breaks(g.Fence, time.Minute, "boss"))
			l.granted(forced(mutex("b")))
			// The promise to a is no longer true, and is not repeated.
			equal(l.t, "closed for", brokenBy(l.t, l.renew("a", ttl)).ClosedFor, 0)
			equal(l.t, "closed for", l.refused(try(mutex("c"))).ClosedFor, 0)
		},
		"WordForAThousandBrokenDoesNotGrowForEver": func(l *lab) {
			for i := range 5000 {
				c := forced(mutex(fmt.Sprint("w", i)))
				c.TTL = driver.MaxTTL
				if _, held := l.e.Acquire(l.now, c, ""); held != nil {
					l.t.Fatalf("refused: %v", held)
				}
			}
			if n := len(l.e.Append(nil)); n > 64<<10 {
				l.t.Fatalf("the entry takes %d bytes", n)
			}
			brokenBy(l.t, l.renew("w4998", ttl)) // the last ones are remembered
			equal(l.t, "remembered", len(l.e.Broken), 256)
		},
	})
}
