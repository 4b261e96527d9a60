//! The table of commands that write files, and how their words are taken apart.

use super::paths;
use super::shell::Word;
use super::writes::Sink;

/// What a command writes, or how that is found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Nothing,
    /// Any file may be written.
    All,
    Fixed(&'static [&'static str]),
    /// Every operand.
    Operands,
    /// `mv`, `cp`, `rm`.
    Files,
    /// The values of these options.
    Values(&'static [&'static str]),
    /// `sed -i`: operands behind a script.
    Script,
    Fetch,
    /// A patch text names the files.
    Patch,
    Find,
    /// A shell: its command is a script of the same kind.
    Shell,
    /// An interpreter whose code may stand in the command.
    Code,
}

const NPM: &[&str] =
    &["package.json", "package-lock.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock"];
const CARGO: &[&str] = &["Cargo.toml", "Cargo.lock"];
const GO: &[&str] = &["go.mod", "go.sum"];
const PYTHON: &[&str] = &["pyproject.toml", "uv.lock", "poetry.lock"];

/// The kind of a command: its name without directory, and its arguments.
pub(super) fn kind(name: &str, args: &[Word]) -> Kind {
    let has = |options: &[&str]| args.iter().any(|word| options.contains(&word.text.as_str()));
    let any = |test: bool| if test { Kind::All } else { Kind::Nothing };
    let first = subcommand(name, args).map_or("", |(word, _)| word);
    let dry = has(&["--check", "--diff", "--dry-run", "-n", "--list-different", "-check", "-c"]);
    match name {
        "echo" | "printf" | "rg" | "grep" | "cat" | "ls" | "cd" | "head" | "tail" => Kind::Nothing,
        "tee" | "touch" | "truncate" | "sponge" | "ln" | "install" | "ed" | "ex" => Kind::Operands,
        "mv" | "cp" | "rm" | "unlink" => Kind::Files,
        "rsync" | "scp" | "rename" | "unzip" | "7z" | "patch" | "cpio" => {
            any(!has(&["-l", "-p", "--list", "--dry-run", "-Z", "-t", "l"]))
        }
        "tar" | "bsdtar" | "gtar" => any(extracts(args)),
        "dd" => Kind::Values(&["of="]),
        "sort" => Kind::Values(&["-o", "--output"]),
        "sed" | "gsed" => writing_script(clusters(args, b"efl") || has_start(args, "--in-place")),
        "awk" | "gawk" => writing_script(has(&["inplace"])),
        "perl" if clusters(args, b"eEMImx") => Kind::Script,
        "ruby" if clusters(args, b"eEIrx") => Kind::Script,
        "curl" | "wget" => Kind::Fetch,
        "apply_patch" | "applypatch" => Kind::Patch,
        "find" | "gfind" => Kind::Find,
        "bash" | "sh" | "zsh" | "dash" | "ksh" | "eval" => Kind::Shell,
        "python" | "python3" | "python2" | "node" | "deno" | "bun" | "perl" | "ruby" | "php"
            if inline(name, args).is_some()
                || operands(args).next().is_none_or(|w| w.text == "-") =>
        {
            Kind::Code
        }
        "git" => git(args),
        "gh" => any(first == "pr" && has(&["checkout"])),
        "cargo" => match first {
            "fmt" => any(!dry),
            "fix" => Kind::All,
            "add" | "remove" | "rm" | "update" => Kind::Fixed(CARGO),
            _ => any(has(&["--fix"])),
        },
        "go" => match first {
            "fmt" | "generate" | "fix" => Kind::All,
            "get" | "mod" | "work" => Kind::Fixed(GO),
            _ => Kind::Nothing,
        },
        "npm" | "pnpm" | "yarn" => match first {
            "install" | "i" | "add" | "remove" | "uninstall" | "rm" | "update" | "up" | "ci"
            | "upgrade" | "init" | "pkg" | "version" | "dedupe" => Kind::Fixed(NPM),
            _ => any(formats(target(name, args)) || has(&["--fix", "--write"])),
        },
        "bun" => match first {
            "install" | "i" | "add" | "remove" | "update" => Kind::Fixed(NPM),
            _ => any(formats(target(name, args)) || has(&["--fix", "--write"])),
        },
        "uv" | "poetry" | "pdm" => match first {
            "add" | "remove" | "lock" | "sync" | "update" | "init" => Kind::Fixed(PYTHON),
            _ => Kind::Nothing,
        },
        "make" | "just" | "task" | "nx" | "turbo" | "mage" | "rake" => {
            any(args.iter().any(|word| formats(&word.text)))
        }
        "rustfmt" | "black" | "isort" | "stylua" | "swiftformat" | "autoflake" | "pyupgrade"
        | "leptosfmt" | "taplo" => any(!dry && !has(&["--check-only"])),
        "ruff" => any(!dry && (first == "format" || has(&["--fix", "--unsafe-fixes"]))),
        "gofmt" | "goimports" | "gofumpt" | "gci" | "shfmt" => any(has(&["-w", "--write"])),
        "autopep8" | "clang-format" | "yapf" | "google-java-format" => {
            any(has(&["-i", "--in-place", "--replace"]))
        }
        "prettier" => any(has(&["--write", "-w"])),
        "dart" | "mix" | "terraform" | "tofu" | "zig" | "deno" | "dprint" | "gleam" | "forge" => {
            any(!dry && (matches!(first, "format" | "fmt") || has(&["--apply"])))
        }
        "rubocop" | "standardrb" => {
            any(has(&["-a", "-A", "--autocorrect", "--autocorrect-all", "--auto-correct", "--fix"]))
        }
        "pre-commit" | "lefthook" | "lint-staged" => any(first == "run" || name == "lint-staged"),
        "biome" => any(has(&["--write", "--apply", "--fix"])),
        _ => any(has(&["--fix", "--write", "--in-place"])),
    }
}

fn writing_script(writes: bool) -> Kind {
    if writes { Kind::Script } else { Kind::Nothing }
}

fn has_start(args: &[Word], start: &str) -> bool {
    args.iter().any(|word| word.text.starts_with(start))
}

/// An option cluster holds `i` before any of the letters that take the rest as their value.
fn clusters(args: &[Word], stops: &[u8]) -> bool {
    args.iter().any(|word| {
        let Some(letters) = word.text.strip_prefix('-').filter(|rest| !rest.starts_with('-'))
        else {
            return false;
        };
        let end = letters.bytes().position(|b| stops.contains(&b)).unwrap_or(letters.len());
        word.text.len() < 40 && letters.bytes().take(end).any(|b| b == b'i')
    })
}

fn extracts(args: &[Word]) -> bool {
    args.iter().enumerate().any(|(at, word)| {
        let letters = word.text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        let old = (at == 0).then_some(word.text.as_str());
        matches!(word.text.as_str(), "--extract" | "--get")
            || letters.or(old).is_some_and(|letters| {
                letters.len() < 8
                    && letters.contains('x')
                    && letters.bytes().all(|b| b.is_ascii_alphabetic())
            })
    })
}

/// The first operand, the options that stand before it aside, and its place.
fn subcommand<'a>(name: &str, args: &'a [Word]) -> Option<(&'a str, usize)> {
    let valued: &[&str] = match name {
        "git" => &["-C", "-c", "--git-dir", "--work-tree", "--namespace"],
        "npm" | "pnpm" | "yarn" | "bun" => {
            &["--filter", "-F", "--prefix", "-C", "--dir", "--cwd", "-w", "--workspace"]
        }
        "cargo" => &["--manifest-path", "--config", "-C", "-Z"],
        "gh" => &["-R", "--repo"],
        "uv" => &["--directory", "--project"],
        "go" => &["-C"],
        _ => &[],
    };
    let at = skip_options(args, 0, valued);
    let at = if args.get(at).is_some_and(|w| name == "cargo" && w.text.starts_with('+')) {
        skip_options(args, at.saturating_add(1), valued)
    } else {
        at
    };
    args.get(at).map(|word| (word.text.as_str(), at))
}

/// The place of the first word from `at` on that is no option; `--` is stepped over.
fn skip_options(words: &[Word], mut at: usize, valued: &[&str]) -> usize {
    while let Some(word) = words.get(at) {
        if !word.text.starts_with('-') || word.text.len() < 2 {
            break;
        }
        at = at.saturating_add(if valued.contains(&word.text.as_str()) { 2 } else { 1 });
        if word.text == "--" {
            break;
        }
    }
    at
}

/// The script that a package manager runs.
fn target<'a>(name: &str, args: &'a [Word]) -> &'a str {
    let Some((first, at)) = subcommand(name, args) else { return "" };
    if !matches!(first, "run" | "run-script" | "workspace") {
        return first;
    }
    let behind = at.saturating_add(if first == "workspace" { 2 } else { 1 });
    args.get(skip_options(args, behind, &[])).map_or("", |word| &word.text)
}

/// The name of a script or target that rewrites files: `format`, `lint:fix`, `generate` …
fn formats(target: &str) -> bool {
    let mut parts = target.split([':', '-', '_', '.', '/']);
    let writes = |part: &str| {
        matches!(
            part,
            "format" | "fmt" | "fix" | "prettier" | "codegen" | "generate" | "gen" | "tidy"
        )
    };
    parts.clone().any(writes) && !parts.any(|part| matches!(part, "check" | "test" | "verify"))
}

fn git(args: &[Word]) -> Kind {
    let Some((name, at)) = subcommand("git", args) else { return Kind::Nothing };
    let rest = args.get(at.saturating_add(1)..).unwrap_or_default();
    let next = rest.first().map_or("", |word| &word.text);
    let writes = match name {
        // A new branch from where we are changes no file.
        "checkout" | "switch" => {
            let new = ["-b", "-B", "-c", "-C", "--create", "--orphan"];
            let creates = rest.iter().any(|word| new.contains(&word.text.as_str()));
            !creates || operands(rest).count() != 1
        }
        "stash" => !matches!(next, "list" | "show"),
        "apply" => !rest.iter().any(|w| matches!(w.text.as_str(), "--check" | "--stat")),
        "restore" | "reset" | "am" | "merge" | "rebase" | "pull" | "revert" | "cherry-pick"
        | "clean" | "mv" | "rm" | "submodule" | "checkout-index" | "read-tree" => true,
        _ => false,
    };
    if writes { Kind::All } else { Kind::Nothing }
}

/// Looks through what runs another command. True: that command's arguments come from a pipe.
pub(super) fn unwrap(words: &[Word]) -> (&[Word], bool) {
    let mut at = 0_usize;
    let mut piped = false;
    while let Some(word) = words.get(at) {
        let next = at.saturating_add(1);
        let second = words.get(next).map_or("", |word| word.text.as_str());
        at = match paths::last(&word.text) {
            _ if assignment(&word.text) => next,
            "env" => skip_options(words, next, &["-u", "-C"]),
            "sudo" | "doas" => skip_options(words, next, &["-u", "-g"]),
            "timeout" | "gtimeout" => skip_options(words, next, &["-s", "-k"]).saturating_add(1),
            "nice" | "ionice" => skip_options(words, next, &["-n", "-c"]),
            "time" | "nohup" | "command" | "builtin" | "exec" | "setsid" | "stdbuf" | "npx"
            | "bunx" | "pnpx" | "uvx" | "caffeinate" | "dotenv" => {
                skip_options(words, next, &["-p"])
            }
            "xargs" => {
                piped = true;
                skip_options(words, next, &["-n", "-P", "-I", "-L", "-d", "-s", "-a", "-E", "-J"])
            }
            "uv" | "poetry" | "pipenv" | "pdm" | "hatch" | "pipx" | "rye" if second == "run" => {
                skip_options(words, next.saturating_add(1), &["--with", "--directory", "--project"])
            }
            "bundle" | "pnpm" | "npm" | "yarn" | "mise" if matches!(second, "exec" | "dlx") => {
                skip_options(words, next.saturating_add(1), &[])
            }
            "bun" if second == "x" => skip_options(words, next.saturating_add(1), &[]),
            name if name.starts_with("python") && second == "-m" => next.saturating_add(1),
            _ => break,
        };
    }
    (words.get(at..).unwrap_or_default(), piped)
}

fn assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        let name = name.strip_suffix('+').unwrap_or(name);
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

/// The words that are no options.
pub(super) fn operands(args: &[Word]) -> impl Iterator<Item = &Word> {
    let mut options = true;
    args.iter().filter(move |word| {
        if options && word.text == "--" {
            options = false;
            return false;
        }
        !options || word.text.len() < 2 || !word.text.starts_with('-')
    })
}

/// The code behind `-c`, `-lc`, `-e`, `--eval` …
pub(super) fn inline<'a>(name: &str, args: &'a [Word]) -> Option<&'a str> {
    let wanted = |option: &str| match name {
        "bash" | "sh" | "zsh" | "dash" | "ksh" => option.ends_with('c'),
        "python" | "python3" | "python2" => option.ends_with('c') && option.len() < 6,
        "node" | "bun" => matches!(option, "-e" | "--eval" | "-p" | "-pe" | "--print"),
        "php" => option == "-r",
        _ => !option.starts_with("--") && option.ends_with(['e', 'E']),
    };
    if name == "deno" {
        let eval = args.first().is_some_and(|word| word.text == "eval");
        return args.last().filter(|_| eval).map(|word| word.text.as_str());
    }
    let at = args.iter().position(|word| !word.text.starts_with('-') || wanted(&word.text))?;
    let option = args.get(at).filter(|word| word.text.starts_with('-') && word.text.len() > 1)?;
    wanted(&option.text).then(|| args.get(at.saturating_add(1)).map(|word| word.text.as_str()))?
}

/// Code that holds one of these may write a file.
const WRITING: [&str; 24] = [
    "write",
    "'w",
    "\"w",
    "'a'",
    "\"a\"",
    "'r+",
    "\"r+",
    "'x'",
    "dump(",
    "rename",
    "unlink",
    "remove",
    "rmtree",
    "copy",
    "move(",
    "truncate",
    "save",
    "to_csv",
    "system(",
    "subprocess",
    "exec",
    "spawn",
    "Popen",
    "touch(",
];

pub(super) fn may_write(code: &str) -> bool {
    WRITING.iter().any(|mark| memchr::memmem::find(code.as_bytes(), mark.as_bytes()).is_some())
        || memchr::memmem::find(code.as_bytes(), b"open(").is_some_and(|_| code.contains('>'))
}

/// Adds every run of path characters in a code that ends like a file name.
pub(super) fn names_in(code: &str, sink: &mut Sink) {
    let inside = |c: char| c.is_alphanumeric() || "_./@+~-".contains(c);
    let mut method = false;
    for run in code.split_inclusive(|c: char| !inside(c)) {
        // `).write` is a method, `'.env'` a file.
        let called = method && run.starts_with('.');
        method = run.ends_with([')', ']', '}']);
        let name = paths::last(run.trim_end_matches(|c| !inside(c)).trim_end_matches('.'));
        if run.len() <= 400 && !called && paths::file_like(name) {
            sink.name(name);
        }
    }
}
