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

# Only if nothing else was said at all: no test that failed, no panic, no line of a log. The fault
# has two forms. A SIGSEGV without a panic is one outside of Go code, here of the detector that
# synctest.Run has called: its dump counts as the other form.
fault='ThreadSanitizer: CHECK failed: tsan_rtl.cpp:346 '
said=$(mktemp) || exit 1
trap 'rm -f "$out" "$said"' EXIT
awk -v fault="$fault" '
	/^SIGSEGV: segmentation violation$/ { dump = $0; next }
	dump == "" { print; next }
	/^exit status / {
		if (dump ~ /\[running, synctest bubble [0-9]+\]:\nruntime\.systemstack_switch/) print fault; else print dump
		dump = ""; print; next
	}
	{ dump = dump "\n" $0 }
	END { if (dump != "") print dump }
' "$out" > "$said" && mv "$said" "$out" || exit 1
grep -qvE "^(ok|\?|FAIL) *	|^FAIL$|^-test\.shuffle |^$fault|^exit status " "$out" && exit 1
ended=$(awk -v fault="^$fault" '
	/^FAIL\t/ { if (last !~ fault) exit 1; print $2 }
	!/^exit status / { last = $0 }
' "$out") && [ -n "$ended" ] || exit 1
echo "The race detector ended these by itself (golang/go#78156); once more:" $ended
go test -race "${flags[@]}" $ended
