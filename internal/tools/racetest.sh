#!/usr/bin/env bash
# racetest.sh FLAGS... -- PACKAGES...: go test -race. A package that the race detector ends by a
# fault of its own is run once more: CONTRIBUTING.md has the evidence (golang/go#78156).
set -uo pipefail

flags=()
while [ "$1" != -- ]; do flags+=("$1"); shift; done
shift

out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
go test -race "${flags[@]}" "$@" 2>&1 | tee "$out" && exit 0

# Only if nothing else was said at all: no test that failed, no panic, no line of a log.
fault='ThreadSanitizer: CHECK failed: tsan_rtl.cpp:346 '
grep -qvE "^(ok|\?|FAIL) *	|^FAIL$|^-test\.shuffle |^$fault|^exit status " "$out" && exit 1
ended=$(awk -v fault="^$fault" '
	/^FAIL\t/ { if (last !~ fault) exit 1; print $2 }
	!/^exit status / { last = $0 }
' "$out") && [ -n "$ended" ] || exit 1
echo "The race detector ended these by itself (golang/go#78156); once more:" $ended
go test -race "${flags[@]}" $ended
