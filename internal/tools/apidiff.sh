#!/usr/bin/env bash
# apidiff.sh [PACKAGES...]: prints the incompatible changes of the exported API since the last release.
# From v1 on, such a change is an error.
set -euo pipefail
cd "$(dirname "$0")/../.."

last=$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null) || { echo 'apidiff: there is no release yet'; exit 0; }
mkdir -p bin
GOWORK=off go -C internal/tools build -o "$PWD/bin/apidiff" golang.org/x/exp/cmd/apidiff
here=$PWD old=$(mktemp -d)
trap 'git worktree remove --force "$old/tree"; rm -rf "$old"' EXIT
git worktree add --quiet --detach "$old/tree" "$last"

# Packages for authors of backends may change, except the types of driver of which package pawl has an
# alias: CONTRIBUTING.md says why.
driver=$(go list ./driver)
ours=$(grep -ohE '= driver\.[A-Z]\w*' ./*.go | sed 's/.*\.//' | sort -u | paste -sd'|')
public() { go list "${@:-work}" | grep -vE '/(internal|examples|cmd|driver|drivertest|locktable)(/|$)'; }
broken=false
for pkg in $(cd "$old/tree" && public "$@") "$driver"; do
	(cd "$old/tree" && "$here/bin/apidiff" -w "$old/api" "$pkg")
	changed=$(bin/apidiff -incompatible "$old/api" "$pkg") || { echo "apidiff: $pkg was removed since $last"; broken=true; continue; }
	[ "$pkg" != "$driver" ] || changed=$(grep -E "^- ($ours)[.:]" <<<"$changed") || true
	[ -z "$changed" ] || { printf 'apidiff: %s, since %s:\n%s\n' "$pkg" "$last" "$changed"; broken=true; }
done
case $last in v0.*) ;; *) ! $broken ;; esac
