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
	"${CC:-cc}" -O2 -w -DSAFETY -DCOLLAPSE -DMEMLIM=1800 -o pan pan.c
	nice ./pan -m10000 >out 2>&1 || true
	if grep -q 'max search depth too small\|pan: out of memory\|Search not completed' out && [ "$wanted" = holds ]; then
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
run holds "the same with three claims, and less time" -DCLAIMS=3 -DTICKS=1 -DNO_SKEW
run holds "one node loses its data and stays away for the longest TTL" -DCLAIMS=2 -DLOSS
run holds "it votes again at once, clocks agree: two may hold, fences rise" -DCLAIMS=2 -DLOSS -DNO_DELAY -DNO_SKEW -DFENCES
run fails "without the write-back" -DNO_WRITEBACK
run fails "a node that lost its data votes again at once: two hold" -DLOSS -DNO_DELAY -DNO_SKEW
run fails "it votes again at once, and no clock carries the fences" -DLOSS -DNO_DELAY -DNO_CLOCK -DFENCES
run fails "it votes again at once, and another node's clock was ahead" -DLOSS -DNO_DELAY -DFENCES
