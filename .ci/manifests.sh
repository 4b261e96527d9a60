#!/bin/sh
# Scripts, JSON and TOML are well-formed. What they say is checked by tests/integration/tidy.rs.
set -eu

for script in .ci/run .ci/*.sh; do
    [ -x "$script" ] || { echo "$script cannot be run"; exit 1; }
done
bash -n .ci/run
for script in .ci/*.sh systemd/*.sh plugin/*/bin/compactd-hook; do
    sh -n "$script"
done
cargo metadata --format-version 1 --locked --no-deps >/dev/null

if ! command -v python3 >/dev/null; then
    echo "no python3: JSON and TOML files are checked by cargo and the tests only"
    exit 0
fi
python3 - <<'END'
import json, os, sys

try:
    import tomllib
except ImportError:
    tomllib = None

bad = checked = 0
for folder, folders, names in os.walk("."):
    folders[:] = [name for name in folders if name not in ("target", ".git", ".cache", "node_modules")]
    for name in names:
        path = os.path.join(folder, name)
        try:
            if name.endswith(".json"):
                with open(path, encoding="utf-8") as file:
                    json.load(file)
            elif name.endswith(".toml") and tomllib:
                with open(path, "rb") as file:
                    tomllib.load(file)
            else:
                continue
            checked += 1
        except ValueError as error:
            bad += 1
            print(f"{path}: {error}")
print(f"{checked} JSON and TOML files are well-formed" if not bad else f"{bad} files are not")
sys.exit(bool(bad))
END
