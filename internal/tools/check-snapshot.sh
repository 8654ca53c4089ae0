#!/usr/bin/env bash
# Looks at what `make snapshot` has left in dist/: all is there, the packages hold what they
# should, and the program needs nothing beside itself.
set -euo pipefail
cd "$(dirname "$0")/../.."
fail() { echo "dist: $*" >&2; exit 1; }
one() { # one PATTERN: the file that has this name, and no other
	local found=(dist/$1)
	[ ${#found[@]} = 1 ] && [ -e "${found[0]}" ] || fail "not one $1: ${found[*]}"
	echo "${found[0]}"
}

for p in linux_amd64 linux_arm64 darwin_amd64 darwin_arm64; do
	held=$(tar tzf "$(one "*_$p.tar.gz")")
	for f in pawl LICENSE README.md man/pawl-run.1 completions/_pawl; do
		grep -qx "$f" <<<"$held" || fail "no $f in the archive for $p"
	done
done
for p in windows_amd64 windows_arm64; do
	held=$(unzip -Z1 "$(one "*_$p.zip")")
	grep -qx pawl.exe <<<"$held" || fail "no pawl.exe in the archive for $p"
done
(cd dist && sha256sum --quiet -c checksums.txt)

deb=$(one '*_amd64.deb') rpm=$(one '*.x86_64.rpm')
in_deb=$(dpkg-deb -c "$deb") in_rpm=$(rpm -qlp "$rpm" 2>/dev/null)
for f in /usr/bin/pawl /usr/share/man/man1/pawl-run.1 /usr/share/bash-completion/completions/pawl; do
	grep -q " \.$f" <<<"$in_deb" || fail "no $f in $deb"
	grep -qx "$f" <<<"$in_rpm" || fail "no $f in $rpm"
done
for p in linux_amd64 windows_arm64; do
	grep -q '"pkg:golang/modernc.org/sqlite@' "$(one "*_$p.cdx.json")" || fail "the list of modules for $p lacks one"
done

# In an empty folder as its root, as in the image that Dockerfile makes.
empty=$(mktemp -d)
trap 'rm -rf "$empty"' EXIT
dpkg-deb -x "$deb" "$empty/deb"
mv "$empty/deb/usr/bin/pawl" "$empty/pawl"
rm -r "$empty/deb"
in=(chroot "$empty")
[ "$(id -u)" = 0 ] || in=(unshare -r chroot "$empty")
"${in[@]}" /pawl version
said=$("${in[@]}" /pawl --url sqlite:/locks.db run x -- /pawl --url sqlite:/locks.db show x)
[[ $said == "x is held"* ]] ||
	fail "it does not lock in an empty folder"
echo "dist: ok"
