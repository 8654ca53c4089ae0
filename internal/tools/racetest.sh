#!/usr/bin/env bash
# racetest.sh FLAGS... -- PACKAGES...: go test -race. A package that the race detector ends by a fault of its own, with no
# test failed, is run once more: CONTRIBUTING.md has the evidence (golang/go#78156).
set -uo pipefail

flags=()
while [ "$1" != -- ]; do flags+=("$1"); shift; done
shift

out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
go test -race "${flags[@]}" "$@" 2>&1 | tee "$out" && exit 0

ended=$(awk '
	/^ThreadSanitizer: CHECK failed: tsan_rtl.cpp:346/ { ended = 1 }
	/^--- FAIL|^WARNING: DATA RACE|^panic:/            { failed = 1 }
	/^(ok|FAIL|\?)\t|^(ok|\?) /                        { if (ended && !failed) print $2; ended = failed = 0 }
' "$out")
[ -n "$ended" ] && [ "$(wc -l <<<"$ended")" = "$(grep -c $'^FAIL\t' "$out")" ] || exit 1
echo "The race detector ended these by itself (golang/go#78156); once more:" $ended
go test -race "${flags[@]}" $ended
