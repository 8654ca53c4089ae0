#!/usr/bin/env bash
# Checks the files that `make snapshot` has made in dist/: none is missing, the packages contain their
# files, and the program runs without any other file.
set -euo pipefail
cd "$(dirname "$0")/../.."
fail() { echo "dist: $*" >&2; exit 1; }
one() { # one PATTERN: prints the only file that matches
	local found=(dist/$1)
	[ ${#found[@]} = 1 ] && [ -e "${found[0]}" ] || fail "want one $1, not: ${found[*]}"
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
	grep -q '"pkg:golang/modernc.org/sqlite@' "$(one "*_$p.cdx.json")" || fail "the list of modules for $p lacks modernc.org/sqlite"
done

# The program runs with an empty folder as its root, like the image of the Dockerfile.
empty=$(mktemp -d)
trap 'rm -rf "$empty"' EXIT
dpkg-deb -x "$deb" "$empty/deb"
mv "$empty/deb/usr/bin/pawl" "$empty/pawl"
rm -r "$empty/deb"
in=(chroot "$empty")
[ "$(id -u)" = 0 ] || in=(unshare -r chroot "$empty")
"${in[@]}" /pawl version
printed=$("${in[@]}" /pawl --url sqlite:/locks.db run x -- /pawl --url sqlite:/locks.db show x)
[[ $printed == "x is held"* ]] ||
	fail "the program does not lock in an empty folder"
echo "dist: ok"
