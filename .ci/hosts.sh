#!/bin/sh
# Sees to what the tests run that is not ours, and prints the path of its program (words go to
# stderr):
#   .ci/hosts.sh claude    the real Claude Code, from npm into a cache folder
#   .ci/hosts.sh codex     the real Codex, likewise: its native program, not npm's launcher
#   .ci/hosts.sh tsc       the TypeScript compiler, likewise
#   .ci/hosts.sh tmux      the system's tmux
# The versions are those of tests/hosts.env. Run again it installs nothing; several may run at once.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=tests/hosts.env
. "$root/tests/hosts.env"
exec 3>&1 1>&2

missing() {
    echo "missing: $1"
    echo "hint: $2"
    exit 1
}

# system PROGRAM PACKAGE...: a program of the system's packages; installed if we may.
system() {
    program=$1
    shift
    command -v "$program" >/dev/null && return
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
    fi
    command -v "$program" >/dev/null ||
        missing "$program" "install it with the system's packages ($*)"
}

# npm's name for this machine's build of the host.
claude_package() {
    case $(uname -m) in
    x86_64 | amd64) machine=x64 ;;
    arm64 | aarch64) machine=arm64 ;;
    *) missing "Claude Code for $(uname -m)" "run these tests on x86-64 or ARM64" ;;
    esac
    case $(uname -s) in
    Linux)
        libc=
        if ldd --version 2>&1 | grep -qi musl; then libc=-musl; fi
        echo "@anthropic-ai/claude-code-linux-$machine$libc"
        ;;
    Darwin) echo "@anthropic-ai/claude-code-darwin-$machine" ;;
    *) missing "Claude Code for $(uname -s)" "run these tests on Linux or macOS" ;;
    esac
}

# Where npm's package has this machine's build of Codex. The programs that it starts itself are
# beside it.
codex_program() {
    case $(uname -m) in
    x86_64 | amd64) machine=x64 cpu=x86_64 ;;
    arm64 | aarch64) machine=arm64 cpu=aarch64 ;;
    *) missing "Codex for $(uname -m)" "run these tests on x86-64 or ARM64" ;;
    esac
    case $(uname -s) in
    Linux) system=linux triple=$cpu-unknown-linux-musl ;;
    Darwin) system=darwin triple=$cpu-apple-darwin ;;
    *) missing "Codex for $(uname -s)" "run these tests on Linux or macOS" ;;
    esac
    echo "node_modules/@openai/codex-$system-$machine/vendor/$triple/bin/codex"
}

# says PROGRAM VERSION: whether it runs and says that it is this version. Its HOME is scratch.
says() {
    said=$(env -i PATH="$PATH" HOME="$scratch" "$1" --version) || return 1
    case " $said " in
    *" $2 "*) ;;
    *)
        echo "$1 says: $said"
        return 1
        ;;
    esac
}

# npm_program FOLDER PACKAGE VERSION PROGRAM: a program of an npm package in the cache folder.
npm_program() {
    cache=${XDG_CACHE_HOME:-$HOME/.cache}/compactd-tests
    folder=$cache/$1-$3
    mkdir -p "$cache"
    scratch=$(mktemp -d "$cache/.new-XXXXXX")
    trap 'rm -rf "$scratch"' EXIT
    if [ ! -d "$folder" ]; then
        system npm nodejs npm
        echo "installing $2@$3 into $folder"
        new=$scratch/$1-$3
        npm install --ignore-scripts --no-save --no-package-lock --no-audit --no-fund \
            --fetch-retries 5 --prefix "$new" "$2@$3" ||
            missing "$2@$3" "npm could not install it; its own words stand above"
        says "$new/$4" "$3" || missing "$2@$3" "what npm installed cannot be used"
        # Another run may have been faster. Then this goes into its folder, and out again.
        mv "$new" "$folder"
        rm -rf "${folder:?}/$1-$3"
    fi
    says "$folder/$4" "$3" || missing "$2@$3" "remove $folder and run this again"
    echo "$folder/$4" >&3
}

case ${1:-} in
claude)
    package=$(claude_package) || {
        echo "$package"
        exit 1
    }
    npm_program claude-code "$package" "$CLAUDE_CODE_VERSION" "node_modules/$package/claude"
    ;;
codex)
    program=$(codex_program) || {
        echo "$program"
        exit 1
    }
    npm_program codex @openai/codex "$CODEX_VERSION" "$program"
    ;;
tsc)
    system node nodejs
    npm_program typescript typescript "$TYPESCRIPT_VERSION" node_modules/.bin/tsc
    ;;
tmux)
    system tmux tmux
    command -v tmux >&3
    ;;
*)
    echo "usage: .ci/hosts.sh claude|codex|tsc|tmux"
    exit 2
    ;;
esac
