#!/bin/sh
# Runs the models in each of their variants, in a folder of its own, one after the other, and wants of each what is
# written here. See README.md. It takes six minutes, and less than 2 GB.
set -eu
models=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# run MODEL WANTED TITLE OPTIONS...: WANTED is "holds", or "fails" for a counterexample.
run() {
	model=$models/$1.pml wanted=$2 title=$3
	shift 3
	spin -a "$@" "$model" >spin.out || { cat spin.out; exit 1; }
	"${CC:-cc}" -O2 -w -DSAFETY -DCOLLAPSE -DNOFAIR -DNOBOUNDCHECK -DMEMLIM=1800 -o pan pan.c
	nice ./pan -E -m100000 >out 2>&1 || true
	if grep -q 'max search depth too small\|MEMLIM bound\|out of memory' out; then
		got=unfinished
	elif grep -q 'errors: 0' out; then
		got=holds
	elif grep -q 'assertion violated' out; then
		got=fails
	else
		got=unfinished
	fi
	printf '%-7s %-78s %s\n' "$got" "$title" "$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1 states/p' out)"
	if [ "$got" != "$wanted" ]; then
		echo "wanted: $wanted"
		cat out
		exit 1
	fi
	if [ "$got" = fails ] && [ -n "${TRAIL:-}" ]; then
		spin -t -p -g "$@" -k "$work/$(basename "$model").trail" "$model" || true
	fi
}

run quorum holds "fences rise, one holder" -DCLAIMS=2
run quorum holds "the same with a third claim, in less time" -DCLAIMS=3 -DTICKS=1 -DNO_SKEW
run quorum holds "a node loses its data, and stays away for the longest TTL" -DCLAIMS=2 -DLOSS
run quorum holds "it votes again too early, clocks agree: two may hold, and fences still rise" -DCLAIMS=2 -DLOSS -DNO_DELAY -DNO_SKEW -DFENCES
run quorum fails "without the write-back" -DCLAIMS=2 -DNO_WRITEBACK
run quorum fails "a node that lost its data votes again too early: two hold" -DCLAIMS=2 -DTTL=2 -DONE -DLOSS -DNO_DELAY -DNO_SKEW
run quorum fails "the same, and no clock carries the fences" -DCLAIMS=2 -DLOSS -DNO_DELAY -DNO_CLOCK -DFENCES
run quorum fails "the same, and another node's clock was ahead" -DCLAIMS=2 -DLOSS -DNO_DELAY -DFENCES

run repair holds "two clocks jump, and renewals repair the votes" -DTICKS=3 -DFAULTS=2 -DREPAIR -DSTANDOFF
run repair holds "the same, and the node forgets who waits, too" -DTICKS=3 -DFAULTS=2 -DFLUSH -DREPAIR -DSTANDOFF
run repair holds "the same, and renewals that come when the term is over extend it" -DTICKS=3 -DFAULTS=2 -DREPAIR -DSTANDOFF -DREVIVE
run repair fails "without repair: an acquire misses a node, and a clock jumps" -DTICKS=3 -DMISSED=1 -DFAULTS=1 -DANYTIME
run repair fails "without repair: two clocks jump, with a renewal between" -DTICKS=3 -DFAULTS=2 -DRENEWED
run repair fails "with repair: two clocks jump, and the repair has not come" -DTICKS=3 -DFAULTS=2 -DANYTIME -DREPAIR -DSTANDOFF
run repair holds "a signal may be read after later attempts" -DTICKS=2 -DEARLIER -DSIGNALS
run repair fails "what was said before an attempt counts after its answer" -DTICKS=2 -DEARLIER -DSIGNALS -DSTALE
run repair fails "a signal of a node counts that has not answered the last attempt" -DTICKS=2 -DEARLIER -DSIGNALS -DUNHEARD
run permits holds "two permits, three claims"
run permits holds "the same, and a node forgets a claim" -DFAULTS=1
run permits fails "a majority is enough" -DNO_COUNT
run permits fails "who has no majority does not count, at the first look" -DFAULTS=1 -DHASTY
run ends holds "an end, and a second release after it"
run ends holds "a release that has an end, and a claim that waits for it" -DOVERTAKEN -DON_TIME
run ends fails "no end" -DNO_END
run ends fails "one release" -DONE
run ends fails "a second one only if the last attempt was not answered" -DLAST
run ends fails "the backend's clock is set back" -DCLOCK_BACK
run ends fails "a request is delivered twice" -DTWICE
run ends fails "a release without an end, and a claim that does not wait" -DOVERTAKEN
run tick holds "a clock that its clients keep: nobody enters early"
run tick fails "a reading stays as far ahead of a new tick as it was" -DNO_CAP
run tick fails "it stays slip ahead, though a tick was missed" -DSKIPPED
run tick fails "a reading goes further than the last tick allows" -DNO_ROOM
run tick fails "a step is written under any tick" -DNO_WINDOW
run tick fails "a step is sent though the reading was put back since" -DBEHIND
run tick fails "a step is sent though a tick has come that is later" -DOVERTAKEN
run tick fails "a lease ends a TTL after its reading" -DNO_BLUR
run tick fails "a lease without slip" -DNO_SLIP
run tick fails "steps under the tick of a clock at rest" -DRESTING
run tick fails "a clock that is twice as fast" -DFAST
run tick holds "steps of a far client, under ticks that it has not heard of" -DWIDE=1 -DEND=5
run tick fails "the same, and a lease ends as if it was not so" -DWIDE=1 -DEND=5 -DNO_WIDTH
run tick fails "the same, and also under the tick of a clock at rest" -DWIDE=1 -DWIDE_REST
run tick fails "the same, and a reading stays slip ahead though a tick was missed" -DWIDE=1 -DSKIPPED
