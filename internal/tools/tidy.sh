#!/usr/bin/env bash
# Updates go.mod and go.sum of each module; with -diff it only prints the changes.
#
# go mod tidy ignores go.work, and no go.mod has a replace. So the script works on copies, with the
# replaces of go.work.
#
# It omits the API server of Kubernetes, which requires v0.0.0 of its own parts. No proxy has them: a
# build does not need them, but go mod tidy does, for the tests of required modules.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

mapfile -t modules < <(find . -name go.mod -not -path './bin/*' -not -path '*/testdata/*' -not -path './internal/testservers/kubernetes/*' -printf '%h\n' | sort)
replace=() drop=()
while read -r path version folder; do
	replace+=("-replace=$path@$version=$root/$folder") drop+=("-dropreplace=$path@$version")
done < <(sed -n 's|^\t\(github.com/pawl-go/pawl[^ ]*\) \(v[^ ]*\) => \(.*\)|\1 \2 \3|p' go.work)

failed=false
for module in "${modules[@]}"; do
	cp "$module/go.mod" "$copy/go.mod"
	rm -f "$copy/go.sum"
	[ ! -f "$module/go.sum" ] || cp "$module/go.sum" "$copy/go.sum"
	go mod edit "${replace[@]}" "$copy/go.mod"
	GOWORK=off GOFLAGS=-mod=mod go -C "$module" mod tidy -modfile="$copy/go.mod"
	go mod edit "${drop[@]}" "$copy/go.mod"
	for file in go.mod go.sum; do
		if [ "${1-}" = -diff ]; then
			[ ! -f "$copy/$file" ] || diff -u "$module/$file" "$copy/$file" || failed=true
		elif [ -f "$copy/$file" ] && ! cmp -s "$copy/$file" "$module/$file"; then
			cp "$copy/$file" "$module/$file"
		fi
	done
done
[ $failed = false ] || { echo 'go.mod or go.sum is not tidy: run make tidy' >&2; exit 1; }
