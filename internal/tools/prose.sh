#!/usr/bin/env bash
# Runs vale, with the rules of internal/tools/prose/styles/Pawl, on the documents and the comments of Go.
# It fails if vale finds a mistake.
#
#   prose.sh FILE...   those files
#   prose.sh           all files
set -euo pipefail
cd "$(dirname "$0")/../.."

files() { # files: all that there are to look at
	git ls-files --cached --others --exclude-standard '*.md' '*.go' |
		grep -v -e '^docs/internals/models/' -e '/testdata/' | LC_ALL=C sort -u |
		while IFS= read -r file; do [ ! -f "$file" ] || echo "$file"; done
}

if [ $# -gt 0 ]; then printf '%s\n' "$@"; else files; fi |
	xargs bin/vale --config=internal/tools/prose/vale.ini --no-global --output=line || {
	echo 'Correct these sentences; CONTRIBUTING.md, The voice, says how. Check them with make prose FILES=...' >&2
	exit 1
}
