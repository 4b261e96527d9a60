//! Which files a shell command may write.

use std::collections::BTreeSet;

use super::paths;
use super::shell::{self, Command, Join, Script, Word};
use super::writers::{self, Kind};
use super::{Writes, patch};

/// More names than this count as all files.
const MAX_NAMES: usize = 1000;
/// `bash -c "bash -c …"` deeper than this counts as a write to anything.
const MAX_SHELLS: usize = 5;

/// What was seen to be written so far.
#[derive(Debug, Default)]
pub(super) struct Sink {
    pub all: bool,
    names: BTreeSet<String>,
}

impl Sink {
    /// Adds a file name (last component).
    pub(super) fn name(&mut self, name: &str) {
        if self.names.len() < MAX_NAMES {
            self.names.insert(name.to_owned());
        } else if !self.names.contains(name) {
            self.all = true;
        }
    }

    /// Adds the file that a word names; a name that the shell makes up is any file.
    pub(super) fn word(&mut self, word: &Word) {
        let name = paths::last(&word.text);
        if word.text.starts_with("/dev/") && !word.text.starts_with("/dev/shm/") {
            return;
        }
        if word.live && name.contains(['$', '*', '?', '[', '{', '<']) {
            self.all = true;
        } else if !name.is_empty() && !matches!(name, "-" | "." | "..") {
            self.name(name);
        }
    }

    fn words<'a>(&mut self, words: impl IntoIterator<Item = &'a Word>) {
        for word in words {
            self.word(word);
        }
    }

    /// Adds all of what another call writes.
    pub(super) fn add(&mut self, writes: &Writes) {
        match writes {
            Writes::None => {}
            Writes::Names(names) => names.iter().for_each(|name| self.name(name)),
            Writes::All => self.all = true,
        }
    }

    pub(super) fn finish(self) -> Writes {
        if self.all {
            Writes::All
        } else if self.names.is_empty() {
            Writes::None
        } else {
            Writes::Names(self.names.into_iter().collect())
        }
    }
}

/// Adds what a script writes.
pub(super) fn script(script: &Script, sink: &mut Sink, depth: usize) {
    sink.all |= script.overflow;
    for (at, command) in script.commands.iter().enumerate() {
        for redirect in command.redirects.iter().filter(|redirect| redirect.out) {
            sink.word(&redirect.target);
        }
        let before = at.checked_sub(1).and_then(|at| script.commands.get(at));
        let stdin = Stdin { command, before };
        simple(&command.words, &stdin, sink, depth);
    }
}

/// Where a command's standard input comes from.
struct Stdin<'a> {
    command: &'a Command,
    before: Option<&'a Command>,
}

impl Stdin<'_> {
    /// The text, where the command line holds it: a here-document, or `echo …|` before it.
    fn text(&self) -> Option<String> {
        let here =
            |command: &Command| (!command.input.is_empty()).then(|| command.input.join("\n"));
        here(self.command).or_else(|| {
            let before = self.before.filter(|_| self.command.join == Join::Pipe)?;
            let echo = before.words.first().filter(|w| matches!(&*w.text, "echo" | "printf"));
            here(before).or_else(|| echo.map(|_| joined(before.words.get(1..).unwrap_or_default())))
        })
    }
}

fn joined(words: &[Word]) -> String {
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    texts.join(" ")
}

/// Adds what one simple command writes.
fn simple(words: &[Word], stdin: &Stdin<'_>, sink: &mut Sink, depth: usize) {
    let (words, piped) = writers::unwrap(words);
    let Some((name, args)) = words.split_first() else { return };
    let name = paths::last(&name.text);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let kind = writers::kind(name, args);
    if piped && !matches!(kind, Kind::Nothing | Kind::Shell | Kind::Code | Kind::Find) {
        // The names come from somewhere else.
        sink.all = true;
        return;
    }
    match kind {
        Kind::Nothing => {}
        Kind::All => sink.all = true,
        Kind::Fixed(names) => names.iter().for_each(|name| sink.name(name)),
        Kind::Operands => sink.words(writers::operands(args)),
        Kind::Files => files(name, args, sink),
        Kind::Values(options) => values(options, args, sink),
        Kind::Script => in_place(name, args, sink),
        Kind::Fetch => fetch(name, args, sink),
        Kind::Patch => {
            let mut found = false;
            for text in args.iter().map(|arg| &arg.text).chain(stdin.text().as_ref()) {
                found |= patch::names(text, sink);
            }
            sink.all |= !found;
        }
        Kind::Find => find(args, stdin, sink, depth),
        Kind::Shell => {
            let code = match writers::inline(name, args) {
                Some(code) => Some(code.to_owned()),
                None if name == "eval" => Some(joined(args)),
                None if writers::operands(args).next().is_none() => stdin.text(),
                None => None,
            };
            if depth >= MAX_SHELLS {
                sink.all = true;
            } else if let Some(code) = code {
                script(&shell::parse(&code), sink, depth.saturating_add(1));
            }
        }
        Kind::Code => {
            let inline = writers::inline(name, args).map(str::to_owned);
            let stands_in = || writers::operands(args).next().is_none_or(|word| word.text == "-");
            let code = inline.or_else(|| stands_in().then(|| stdin.text()).flatten());
            if let Some(code) = code.filter(|code| writers::may_write(code)) {
                writers::names_in(&code, sink);
                let named =
                    writers::operands(args).filter(|w| paths::file_like(paths::last(&w.text)));
                named.filter(|word| word.text.len() < 400).for_each(|word| sink.word(word));
            }
        }
    }
}

/// `mv`, `cp`, `rm`: all names; a whole directory or a glob is any file.
fn files(name: &str, args: &[Word], sink: &mut Sink) {
    let operands: Vec<&Word> = writers::operands(args).collect();
    let recursive = args.iter().any(|word| {
        let short = word.text.starts_with('-') && !word.text.starts_with("--");
        word.text == "--recursive" || (short && word.text.contains(['r', 'R', 'a']))
    });
    let taken = if matches!(name, "rm" | "unlink") {
        operands.len()
    } else {
        operands.len().saturating_sub(1)
    };
    for (at, word) in operands.iter().enumerate() {
        let component = paths::last(&word.text);
        let folder = !paths::file_like(component) || (recursive && component.starts_with('.'));
        if at < taken && folder {
            sink.all = true;
        }
        sink.word(word);
    }
}

/// The values of options (`sort -o F`, `dd of=F`).
fn values(options: &[&str], args: &[Word], sink: &mut Sink) {
    let mut args = args.iter();
    while let Some(word) = args.next() {
        let Some(rest) = options.iter().find_map(|option| word.text.strip_prefix(option)) else {
            continue;
        };
        if rest.is_empty() {
            sink.words(args.next());
        } else if !rest.starts_with('-') {
            let text = rest.trim_start_matches('=').to_owned();
            sink.word(&Word { text, quoted: word.quoted, live: word.live });
        }
    }
}

/// `sed -i`, `perl -pi`: every operand but the script.
fn in_place(name: &str, args: &[Word], sink: &mut Sink) {
    let mut given = name != "sed" && name != "gsed" && !name.ends_with("awk");
    let mut rest = args.iter();
    let mut found = Vec::new();
    while let Some(word) = rest.next() {
        let text = word.text.as_str();
        if text.starts_with("--expression") || text.starts_with("--file") {
            given = true;
        } else if text.len() > 1 && text.starts_with('-') && !text.starts_with("--") {
            let inner = text.split_once('i').map_or(text, |(front, _)| front);
            if text.ends_with('e') || inner.ends_with('e') || text == "-f" {
                given = true;
                if text.ends_with(['e', 'f']) {
                    rest.next();
                }
            } else if text == "-i" && name.ends_with("awk") {
                rest.next();
            }
        } else if !text.is_empty() && !text.starts_with("--") {
            found.push(word);
        }
    }
    let files = found.get(usize::from(!given)..).unwrap_or_default();
    sink.words(files.iter().copied());
}

/// `curl -o F`, `curl -O URL`, `wget [-O F] URL`.
fn fetch(name: &str, args: &[Word], sink: &mut Sink) {
    let wget = name == "wget";
    let (letter, long) = if wget { ('O', "--output-document") } else { ('o', "--output") };
    let (mut given, mut remote) = (false, wget);
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        let text = word.text.as_str();
        let short = text.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        let glued = text.strip_prefix(long).and_then(|rest| rest.strip_prefix('='));
        let glued = glued.or_else(|| Some(short?.split_once(letter)?.1));
        if text == long || glued == Some("") {
            given = true;
            sink.words(rest.next());
        } else if let Some(file) = glued {
            given = true;
            sink.word(&Word { text: file.to_owned(), quoted: word.quoted, live: word.live });
        } else {
            remote |= text == "--remote-name" || short.is_some_and(|letters| letters.contains('O'));
        }
    }
    if remote && !given {
        for word in args.iter().filter(|word| word.text.contains("://")) {
            let name = paths::last(word.text.split(['?', '#']).next().unwrap_or_default());
            sink.word(&Word { text: name.to_owned(), quoted: true, live: word.live });
        }
    }
}

/// `find … -delete`, `find … -exec CMD {} \;`.
fn find(args: &[Word], stdin: &Stdin<'_>, sink: &mut Sink, depth: usize) {
    if depth >= MAX_SHELLS {
        sink.all = true;
        return;
    }
    let mut rest = args;
    while let Some((word, behind)) = rest.split_first() {
        rest = behind;
        match word.text.as_str() {
            "-delete" => sink.all = true,
            "-fprint" | "-fprintf" | "-fls" => sink.words(behind.first()),
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let end = behind
                    .iter()
                    .position(|word| word.text == ";" || word.text == "+")
                    .unwrap_or(behind.len());
                let inner = behind.get(..end).unwrap_or_default();
                simple(inner, stdin, sink, depth.saturating_add(1));
                rest = behind.get(end..).unwrap_or_default();
            }
            _ => {}
        }
    }
}
