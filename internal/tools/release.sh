#!/usr/bin/env bash
# release.sh VERSION FOLDER: makes a clone of HEAD in FOLDER in which the modules require VERSION of
# each other, and tags them there. It pushes nothing, but prints the push commands. A module is pushed
# after the modules that it requires.
set -euo pipefail
cd "$(dirname "$0")/../.."
fail() { echo "release: $*" >&2; exit 1; }

version=${1-} folder=${2-}
[[ $version =~ ^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?$ && $version != v0.0.0 ]] ||
	fail "\"$version\" is no version, like v0.1.0"
[ -n "$folder" ] || fail 'no folder for the clone'
[ ! -e "$folder" ] || fail "$folder exists: remove it"
[ -z "$(git tag --list "$version" "*/$version")" ] || fail "$version has tags already"
git clone --quiet . "$folder"
cd "$folder"

mapfile -t folders < <(sed -n 's|^\tgithub.com/pawl-go/pawl\([^ ]*\) v0\.0\.0 => .*|\1|p' go.work | sed 's|^/||' | grep -vxF -e examples -e internal/e2e)
mapfile -t files < <(git ls-files go.mod go.work '*/go.mod' '*/go.work')
sed -i.old -E "s#^((require |replace |\t)github\.com/pawl-go/pawl[^ ]*) v0\.0\.0( |\$)#\1 $version\3#" "${files[@]}"
find . -name 'go.*.old' -not -path './.git/*' -delete
! grep -n 'pawl-go/pawl.* v0\.0\.0' "${files[@]}" || fail 'v0.0.0 is left in these'
go list work >/dev/null # they fit together
git -c advice.detachedHead=false checkout --quiet --detach
git commit --quiet --all --message "release: $version"

push() { # push TAGS...
	for tag in "$@"; do git tag "$tag"; done
	printf 'git -C %q push $REMOTE %s\n' "$folder" "$*"
}
echo 'Check the clone. Then run these commands in order, with REMOTE for the repository:'
push "$version"
backends=()
for f in "${folders[@]}"; do
	case $f in '' | cmd/pawl) ;; *) backends+=("$f/$version") ;; esac
done
push "${backends[@]}"
push "cmd/pawl/$version"
