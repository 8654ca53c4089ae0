#!/usr/bin/env bash
# check.sh [bare [USER]]: runs .ci/run on a fresh clone of HEAD, with a home and temporary files of its
# own. It prints each failure, with the command that repeats it, and then keeps the clone.
#
# With bare, it simulates a new machine: empty caches, an empty environment, no terminal, another umask,
# time zone and language, a path with a space, and no history. If root starts it, root installs missing
# tools, and USER runs the checks.
set -euo pipefail
cd "$(dirname "$0")/../.."

place=$(mktemp -d) clone="$place/a clone"
mkdir "$place/home" "$place/tmp"
own=(HOME="$place/home" TMPDIR="$place/tmp" CI=true)

if [ "${1-}" != bare ]; then
	git clone --quiet . "$clone"
	own+=(GOCACHE="$(go env GOCACHE)" GOMODCACHE="$(go env GOMODCACHE)")
	run=(env "${own[@]}" bash .ci/run)
else
	git clone --quiet --depth 1 "file://$PWD" "$clone"
	for name in PATH GOPROXY GOSUMDB GONOSUMDB SSL_CERT_FILE http_proxy https_proxy no_proxy; do
		[ -z "${!name-}" ] || own+=("$name=${!name}")
	done
	run=(env -i "${own[@]}" TZ=Asia/Kathmandu LANG=de_DE.UTF-8 nohup setsid --wait bash -c 'umask 077; exec bash .ci/run')
	if [ -n "${2-}" ]; then
		make --no-print-directory needs
		chmod 711 "$place"
		chown -R "$2:" "$place"/*
		run=(setpriv --reuid "$2" --regid "$(id -g "$2")" --clear-groups "${run[@]}")
	fi
fi

echo "check: $(git log -1 --format='%h %s'), in $clone; its log is $place/log"
if (cd "$clone" && "${run[@]}") </dev/null >"$place/log" 2>&1; then
	grep -E '^(FLAKY: |==== )' "$place/log"
	chmod -R u+w "$place" # Go's cache of modules is read-only
	rm -rf "$place"
	exit 0
fi
sed -n '/^==== What failed/,$p' "$place/log"
echo "check: failed. The clone is kept: cd '$clone'" >&2
exit 1
