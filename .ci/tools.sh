#!/bin/sh
# Sees to the tools: tells their versions, adds what can be added, and says what is missing.
set -eu

missing() {
    echo "missing: $1"
    echo "hint: $2"
    exit 1
}

command -v cargo >/dev/null ||
    missing "cargo" "install Rust 1.88 or newer, with rustfmt and clippy"

for component in rustfmt clippy; do
    case $component in
    rustfmt) check="cargo fmt --version" ;;
    clippy) check="cargo clippy --version" ;;
    esac
    if ! $check >/dev/null 2>&1; then
        command -v rustup >/dev/null ||
            missing "$component" "install it from where this Rust came from"
        rustup component add "$component" ||
            missing "$component" "rustup component add $component"
    fi
done

if ! command -v cc >/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends gcc libc6-dev
    else
        missing "a C compiler" "install gcc or clang"
    fi
fi

cargo --version
rustc --version
cargo fmt --version
cargo clippy --version
cc --version | head -n 1
for optional in git python3 systemd-analyze node; do
    command -v "$optional" >/dev/null && echo "$optional: there" || echo "$optional: not there, not needed"
done
