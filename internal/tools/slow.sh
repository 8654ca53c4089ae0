#!/usr/bin/env bash
# slow.sh RUNS [PKG]: runs make test RUNS times at the same time, in clones of HEAD. Three or more runs share
# a processor. It prints the seconds and the FLAKY lines of each run, and keeps the log of a run in which a
# test failed.
set -euo pipefail
cd "$(dirname "$0")/../.."

place=$(mktemp -d) used=$(($1 < 3 * $(nproc) ? ($1 + 2) / 3 : $(nproc)))
echo "slow: $(git log -1 --format='%h %s'), in $place"
run() { # run N
	local clone="$place/$1" begun=$SECONDS result=ok
	git clone --quiet -c advice.detachedHead=false . "$clone"
	CI=true taskset -c $(($1 % used)) make -C "$clone" test PKG="$2" </dev/null >"$clone.log" 2>&1 || result="FAILED, see $clone.log"
	echo "run $1: $result, $((SECONDS - begun)) s"
	grep -hE '^(FLAKY: |RED: |--- FAIL)' "$clone.log" || true
	[ "$result" = ok ] && rm -rf "$clone" && { grep -q '^FLAKY: ' "$clone.log" || rm "$clone.log"; }
}
pids=()
for n in $(seq "$1"); do
	run "$n" "${2:-work}" &
	pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
rmdir "$place" 2>/dev/null || true
exit "${failed:-0}"
