//! Commands that show one file, and commands that are cheap to run again.

use super::paths;
use super::shell::{Command, Join, Redirect, Script, Word};

/// More leading `cd`s than this make a command line that shows nothing.
const MAX_DIRS: usize = 16;

/// A command line without groups, substitutions or background jobs:
/// `cd DIR && … && MAIN | FILTER | …` (`;` or a line break may stand for the `&&`).
pub(super) struct Line<'a> {
    /// Arguments of the leading `cd`s.
    pub dirs: Vec<&'a str>,
    pub main: &'a Command,
    pub filters: &'a [Command],
}

/// Takes a script apart; `None` if it has another shape.
pub(super) fn line(script: &Script) -> Option<Line<'_>> {
    if script.compound || script.overflow {
        return None;
    }
    let mut dirs = Vec::new();
    let mut rest = script.commands.as_slice();
    while let [first, next, ..] = rest {
        let [cd, dir] = first.words.as_slice() else { break };
        let joined = matches!(next.join, Join::And | Join::Then);
        if cd.text != "cd" || !joined || dirs.len() >= MAX_DIRS {
            break;
        }
        if dir.live || dir.text.starts_with('-') || !first.redirects.is_empty() {
            return None;
        }
        dirs.push(dir.text.as_str());
        rest = rest.get(1..)?;
    }
    let (main, filters) = rest.split_first()?;
    let quiet = |command: &Command| {
        command.input.is_empty() && command.redirects.iter().all(silences_errors)
    };
    (quiet(main) && filters.iter().all(|c| c.join == Join::Pipe && quiet(c))).then_some(Line {
        dirs,
        main,
        filters,
    })
}

fn silences_errors(redirect: &Redirect) -> bool {
    redirect.out && redirect.stderr && redirect.target.text == "/dev/null"
}

impl Line<'_> {
    /// The directory the main command runs in.
    pub(super) fn cwd(&self, cwd: Option<&str>) -> Option<String> {
        let mut at = cwd.map(str::to_owned);
        for dir in &self.dirs {
            at = Some(paths::normalise(dir, at.as_deref()));
        }
        at
    }

    /// The one file it shows.
    pub(super) fn read(&self, cwd: Option<&str>) -> Option<String> {
        let shown = operands(&self.main.words)?;
        let [file] = shown.as_slice() else { return None };
        let plain = !file.live && !file.text.is_empty() && file.text != "-";
        let through = self.filters.iter().all(|filter| {
            operands(&filter.words).is_some_and(|shown| shown.iter().all(|w| w.text == "-"))
        });
        (plain && through && !file.text.starts_with("/dev/") && !file.text.contains('\n'))
            .then(|| paths::normalise(&file.text, self.cwd(cwd).as_deref()))
    }

    /// At most one filter, and that is `head` or `tail`.
    pub(super) fn shortened_at_most(&self) -> bool {
        match self.filters {
            [] => true,
            [filter] => {
                filter.words.first().is_some_and(|w| matches!(w.text.as_str(), "head" | "tail"))
                    && operands(&filter.words).is_some_and(|shown| shown.is_empty())
            }
            _ => false,
        }
    }
}

/// The files a command shows, or `None` if it is no command that shows whole lines of files.
fn operands(words: &[Word]) -> Option<Vec<&Word>> {
    let (name, args) = words.split_first()?;
    let (valued, refused): (&[&str], &[&str]) = match name.text.as_str() {
        "cat" => (&[], &[]),
        "nl" => (&["-b", "-w", "-s", "-n", "-v", "-i", "-h", "-f", "-d", "-l"], &[]),
        "head" => (&["-n", "-c", "--lines", "--bytes"], &[]),
        "tail" => (&["-n", "-c", "--lines", "--bytes"], &["-f", "-F", "--follow"]),
        "bat" | "batcat" => {
            (&["-r", "--line-range", "-l", "--language", "--style", "--color", "--paging"], &[])
        }
        "sed" => return sed(args),
        _ => return None,
    };
    let mut out = Vec::new();
    let mut args = args.iter();
    let mut options = true;
    while let Some(word) = args.next() {
        let text = word.text.as_str();
        if !options || word.text.len() < 2 || !text.starts_with(['-', '+']) {
            out.push(word);
        } else if text == "--" {
            options = false;
        } else if refused.contains(&text) {
            return None;
        } else if valued.contains(&text) {
            args.next()?;
        } else if text.starts_with('+') && !text.bytes().skip(1).all(|b| b.is_ascii_digit()) {
            out.push(word);
        }
    }
    Some(out)
}

/// `sed -n 'A,Bp;C,Dp' F` and `sed 'Nq' F`: addresses are line numbers.
fn sed(args: &[Word]) -> Option<Vec<&Word>> {
    let mut out = Vec::new();
    let (mut silent, mut quits, mut scripts) = (false, true, 0_usize);
    let mut args = args.iter();
    while let Some(word) = args.next() {
        let text = word.text.as_str();
        let script = match text {
            "-n" | "--quiet" | "--silent" => {
                silent = true;
                continue;
            }
            "-E" | "-r" | "-u" | "--" => continue,
            "-e" => args.next()?,
            "-ne" => {
                silent = true;
                args.next()?
            }
            _ if text.len() > 1 && text.starts_with('-') => return None,
            _ if scripts == 0 => word,
            _ => {
                out.push(word);
                continue;
            }
        };
        let text = script.text.as_str();
        // "$p" in double quotes is a variable to the shell, but "1,$p" is written so all the same.
        if text.is_empty() || !text.bytes().all(|b| b"0123456789,;$pq{} \n".contains(&b)) {
            return None;
        }
        quits &= !text.contains('p');
        scripts = scripts.saturating_add(1);
    }
    (scripts > 0 && silent != quits).then_some(out)
}

/// The words of a command that the patterns are held against: without options that only say where
/// it runs.
pub(super) fn canonical(words: &[Word]) -> Vec<&str> {
    let mut out: Vec<&str> = Vec::with_capacity(words.len());
    let Some((name, args)) = words.split_first() else { return out };
    out.push(&name.text);
    let (flags, valued): (&[&str], &[&str]) = match name.text.as_str() {
        "git" => (&["--no-pager", "-P", "--no-optional-locks"], &["-C", "-c"]),
        "npm" | "pnpm" | "yarn" | "bun" => (
            &["-s", "--silent", "-r", "--recursive", "-ws", "--workspaces"],
            &[
                "--filter",
                "-F",
                "--prefix",
                "-C",
                "--dir",
                "--cwd",
                "-w",
                "--workspace",
                "workspace",
            ],
        ),
        "make" => (&["-s", "--silent"], &["-C", "-f"]),
        _ => (&[], &[]),
    };
    let mut args = args.iter().map(|word| word.text.as_str()).peekable();
    while let Some(text) = args.peek().copied() {
        let glued = text.split_once('=').is_some_and(|(option, _)| valued.contains(&option));
        if valued.contains(&text) {
            args.next();
        } else if !(flags.contains(&text) || glued || (out == ["cargo"] && text.starts_with('+'))) {
            break;
        }
        args.next();
    }
    out.extend(args);
    out
}

/// An entry of the lists of re-runnable commands: words that lead the command, options that stand
/// anywhere in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    lead: Vec<String>,
    options: Vec<String>,
    pub(super) even_if_used: bool,
}

impl Pattern {
    pub(super) fn new(entry: &str, even_if_used: bool) -> Option<Self> {
        let (mut lead, mut options) = (Vec::new(), Vec::new());
        for word in entry.split_whitespace() {
            let option = word.starts_with('-') && word != "-m";
            (if option { &mut options } else { &mut lead }).push(word.to_owned());
        }
        (!lead.is_empty()).then_some(Self { lead, options, even_if_used })
    }

    /// `scripts`: a `run` behind the first word goes unless the entry has it, and the last leading
    /// word also stands for `word:…` (`npm run test:unit`).
    pub(super) fn matches(&self, words: &[&str], scripts: bool) -> bool {
        let runs = scripts
            && words.get(1) == Some(&"run")
            && self.lead.get(1).is_some_and(|word| word != "run")
            && words.first().is_some_and(|w| matches!(*w, "npm" | "pnpm" | "yarn" | "bun"));
        let mut words_left = words.iter().enumerate().filter(|(at, _)| !(runs && *at == 1));
        for (at, lead) in self.lead.iter().enumerate() {
            let Some((_, word)) = words_left.next() else { return false };
            let variant = scripts
                && at > 0
                && at.saturating_add(1) == self.lead.len()
                && word.strip_prefix(lead.as_str()).is_some_and(|rest| rest.starts_with(':'));
            if word != lead && !variant {
                return false;
            }
        }
        self.options.iter().all(|option| words.contains(&option.as_str()))
    }
}
