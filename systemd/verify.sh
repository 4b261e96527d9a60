#!/bin/sh
# Checks the units and the plist. Any output of the checkers is a failure: systemd-analyze exits 0
# for a misspelt key and only says so. The units are checked in a copy whose ExecStart exists.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

if command -v python3 >/dev/null; then
    python3 -c 'import plistlib, sys
plist = plistlib.load(open(sys.argv[1], "rb"))
assert plist["Label"] + ".plist" == sys.argv[1].rsplit("/", 1)[1], "file name = Label"
' "$here/io.github.compactd.plist"
fi

if ! command -v systemd-analyze >/dev/null; then
    echo "skipped: no systemd-analyze"
    exit 0
fi

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
# verify wants the folder of the user's manager to exist.
XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-$copy}
export XDG_RUNTIME_DIR
bin="%h/.local/share/compactd/bin/compactd"
grep -qxF "ExecStart=$bin" "$here/compactd.service" || { echo "ExecStart is not $bin"; exit 1; }
cp "$here/compactd.socket" "$copy/"
sed 's|^ExecStart=.*|ExecStart=/bin/true|' "$here/compactd.service" >"$copy/compactd.service"

# $1: what is checked.
verify() {
    status=0
    output=$(systemd-analyze --user verify "$copy/compactd.service" "$copy/compactd.socket" 2>&1) ||
        status=$?
    if [ "$status" -ne 0 ] || [ -n "$output" ]; then
        printf '%s: exit %s\n%s\n' "$1" "$status" "$output"
        exit 1
    fi
}

verify "compactd.service, compactd.socket"
mkdir "$copy/compactd.service.d"
cp "$here/hardened.conf" "$copy/compactd.service.d/"
verify "with hardened.conf"

# The check itself: a misspelt key must be noticed.
sed 's/^PrivateUsers=/PrivateUsres=/' "$here/hardened.conf" >"$copy/compactd.service.d/hardened.conf"
if (verify "self-test") >/dev/null; then
    echo "a misspelt key in the drop-in was not noticed"
    exit 1
fi
