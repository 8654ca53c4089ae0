#!/usr/bin/env bash
# Makes go.mod and go.sum of each module right; with -diff it only says what is wrong in them.
#
# go mod tidy takes no notice of go.work, and no go.mod has a replace. So it works on a copy, to
# which those of go.work are added.
#
# It leaves out the API server of Kubernetes. That one requires v0.0.0 of its own parts, which no
# proxy has: a build never asks for them, but go mod tidy does, for tests of what is required.
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
[ $failed = false ] || { echo 'go.mod or go.sum is not as make tidy writes it' >&2; exit 1; }
