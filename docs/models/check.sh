#!/bin/sh
# Runs the model in each of its variants, in a folder of its own, one after the other, and wants of each what is
# written here. See README.md. It takes a minute or two, and less than 2 GB.
set -eu
model=$(cd "$(dirname "$0")" && pwd)/quorum.pml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# run WANTED TITLE OPTIONS...: WANTED is "holds", or "fails" for a counterexample.
run() {
	wanted=$1 title=$2
	shift 2
	spin -a "$@" "$model" >spin.out || { cat spin.out; exit 1; }
	"${CC:-cc}" -O2 -w -DSAFETY -DCOLLAPSE -DNOFAIR -DNOBOUNDCHECK -DMEMLIM=1800 -o pan pan.c
	nice ./pan -m10000 >out 2>&1 || true
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
		spin -t -p -g "$@" -k "$work/quorum.pml.trail" "$model" || true
	fi
}

run holds "fences rise, one holder" -DCLAIMS=2
run holds "the same with a third claim, in less time" -DCLAIMS=3 -DTICKS=1 -DNO_SKEW
run holds "a node loses its data, and stays away for the longest TTL" -DCLAIMS=2 -DLOSS
run holds "it votes again too early, clocks agree: two may hold, and fences still rise" -DCLAIMS=2 -DLOSS -DNO_DELAY -DNO_SKEW -DFENCES
run fails "without the write-back" -DCLAIMS=2 -DNO_WRITEBACK
run fails "a node that lost its data votes again too early: two hold" -DCLAIMS=2 -DTTL=2 -DONE -DLOSS -DNO_DELAY -DNO_SKEW
run fails "the same, and no clock carries the fences" -DCLAIMS=2 -DLOSS -DNO_DELAY -DNO_CLOCK -DFENCES
run fails "the same, and another node's clock was ahead" -DCLAIMS=2 -DLOSS -DNO_DELAY -DFENCES
