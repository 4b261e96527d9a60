//! Splits the text of a POSIX shell command into simple commands and words.
//!
//! One pass, every byte is looked at a constant number of times; nesting is bounded, and any text
//! at all gives some answer. It is no shell: what it does not know makes the script not
//! `Script::plain`, and nothing but writes is read from such a script.

mod words;

/// Substitutions and groups deeper than this are read as plain text.
const MAX_DEPTH: usize = 24;
/// A script of more simple commands than this is cut off ([`Script::overflow`]).
const MAX_COMMANDS: usize = 4096;

/// A word after quotes and escapes are resolved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Word {
    /// The text; a command substitution stands as `$()`.
    pub text: String,
    /// Some of it stood in quotes or behind a backslash.
    pub quoted: bool,
    /// The shell would put something else in its place: a glob, a variable, a substitution.
    pub live: bool,
}

/// How a command hangs on the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Join {
    /// `;`, a line break, `&`, or the first of all.
    Then,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `|` or `|&`
    Pipe,
}

/// A redirection to a file (`2>&1` and the like are none).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Redirect {
    /// Output (`>`, `>>`, `>|`, `&>`, `<>`) rather than input.
    pub out: bool,
    /// Standard error alone (`2>`).
    pub stderr: bool,
    pub target: Word,
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    pub words: Vec<Word>,
    pub redirects: Vec<Redirect>,
    /// Bodies of its here-documents and here-strings.
    pub input: Vec<String>,
    pub join: Join,
}

/// All simple commands of a text, substitutions and groups included, in the order they end.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub commands: Vec<Command>,
    /// There were more commands than are listed.
    pub overflow: bool,
    /// Holds a group, a substitution, a keyword or a background command.
    pub compound: bool,
}

/// Splits a text.
pub(super) fn parse(text: &str) -> Script {
    let mut lexer = Lexer { text, at: 0, depth: 0, script: Script::default() };
    lexer.list(false);
    lexer.script
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    script: Script,
}

/// What the next word is for.
#[derive(Clone, Copy)]
enum Use {
    Redirect { out: bool, stderr: bool },
    HereDoc { tabs: bool },
    HereString,
}

/// The command under way at one level.
struct Open {
    command: Command,
    word: Option<Word>,
    next: Option<Use>,
    /// Here-documents to come: their command's place once it has ended, delimiter, `<<-`.
    here: Vec<(Option<usize>, String, bool)>,
}

impl Open {
    fn word(&mut self) -> &mut Word {
        self.word.get_or_insert_default()
    }

    fn push(&mut self, text: &str) {
        self.word().text.push_str(text);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match self.next.take() {
            None => self.command.words.push(word),
            Some(Use::Redirect { out, stderr }) => {
                self.command.redirects.push(Redirect { out, stderr, target: word });
            }
            Some(Use::HereString) => self.command.input.push(word.text),
            Some(Use::HereDoc { tabs }) => self.here.push((None, word.text, tabs)),
        }
    }
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at.saturating_add(ahead)).copied().unwrap_or(0)
    }

    fn skip(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes).min(self.text.len());
    }

    /// Takes the text up to the first of `stops` (which stays) and at least one character.
    fn run(&mut self, stops: &[u8]) -> &str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let more = rest.as_bytes().get(first..).unwrap_or_default();
        let end = more.iter().position(|b| stops.contains(b)).unwrap_or(more.len());
        let end = first.saturating_add(end);
        self.at = self.at.saturating_add(end);
        rest.get(..end).unwrap_or_default()
    }

    /// Takes the text up to the next `stop` and steps over it.
    fn until(&mut self, stop: u8) -> &str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let end = memchr::memchr(stop, rest.as_bytes()).unwrap_or(rest.len());
        self.at = self.at.saturating_add(end).saturating_add(1).min(self.text.len());
        rest.get(..end).unwrap_or_default()
    }

    /// One level: the whole text, or what stands in parentheses (`inside`).
    fn list(&mut self, inside: bool) {
        let mut open = Open {
            command: Command {
                words: Vec::new(),
                redirects: Vec::new(),
                input: Vec::new(),
                join: Join::Then,
            },
            word: None,
            next: None,
            here: Vec::new(),
        };
        while self.at < self.text.len() {
            match self.peek(0) {
                b' ' | b'\t' | b'\r' => {
                    self.skip(1);
                    open.end_word();
                }
                b'\n' => {
                    self.skip(1);
                    self.end(&mut open, Join::Then);
                    self.here_documents(&mut open);
                }
                b'#' if open.word.is_none() => {
                    let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
                    self.skip(memchr::memchr(b'\n', rest).unwrap_or(rest.len()));
                }
                b';' => {
                    self.skip(1);
                    self.end(&mut open, Join::Then);
                }
                b'|' => {
                    let or = self.peek(1) == b'|';
                    self.skip(if or || self.peek(1) == b'&' { 2 } else { 1 });
                    self.end(&mut open, if or { Join::Or } else { Join::Pipe });
                }
                b'&' if self.peek(1) == b'>' => {
                    open.end_word();
                    self.skip(if self.peek(2) == b'>' { 3 } else { 2 });
                    open.next = Some(Use::Redirect { out: true, stderr: false });
                }
                b'&' => {
                    let and = self.peek(1) == b'&';
                    self.skip(if and { 2 } else { 1 });
                    self.script.compound |= !and;
                    self.end(&mut open, if and { Join::And } else { Join::Then });
                }
                b')' => {
                    self.skip(1);
                    self.end(&mut open, Join::Then);
                    if inside {
                        return;
                    }
                    self.script.compound = true;
                }
                b'(' => self.parenthesis(&mut open),
                b'<' | b'>' => self.angle(&mut open),
                _ => self.part(&mut open),
            }
        }
        self.end(&mut open, Join::Then);
    }

    fn parenthesis(&mut self, open: &mut Open) {
        self.script.compound = true;
        if open.word.is_none() && open.command.words.is_empty() && self.peek(1) == b'(' {
            self.arithmetic();
            return;
        }
        self.skip(1);
        if open.word.is_some() && self.peek(0) == b')' {
            // name() — a function is defined; its body is read as commands.
            self.skip(1);
            open.word = None;
            return;
        }
        self.nested();
    }

    fn nested(&mut self) {
        self.script.compound = true;
        if self.depth < MAX_DEPTH {
            self.depth = self.depth.saturating_add(1);
            self.list(true);
            self.depth = self.depth.saturating_sub(1);
        }
    }

    /// `((…))`: steps over it.
    fn arithmetic(&mut self) {
        let mut level = 0_usize;
        while self.at < self.text.len() {
            let byte = self.peek(0);
            self.skip(1);
            match byte {
                b'(' => level = level.saturating_add(1),
                b')' if level <= 1 => return,
                b')' => level = level.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn angle(&mut self, open: &mut Open) {
        let out = self.peek(0) == b'>';
        let test = open.command.words.first().is_some_and(|word| word.text == "[[");
        let arrow = out
            && open
                .word
                .as_ref()
                .is_some_and(|word| !word.quoted && word.text.ends_with(['-', '=']));
        if test || arrow {
            open.push(if out { ">" } else { "<" });
            self.skip(1);
            return;
        }
        let number = open.word.as_ref().is_some_and(|word| {
            !word.quoted && word.text.len() < 4 && word.text.bytes().all(|b| b.is_ascii_digit())
        });
        let mut stderr = false;
        if number {
            stderr = open.word.take().is_some_and(|word| word.text == "2");
        } else {
            open.end_word();
        }
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let (length, next) = match rest {
            [_, b'(', ..] => {
                self.skip(2);
                self.nested();
                open.word().live = true;
                open.push("<()");
                return;
            }
            [b'<', b'<', b'<', ..] => (3, Some(Use::HereString)),
            [b'<', b'<', b'-', ..] => (3, Some(Use::HereDoc { tabs: true })),
            [b'<', b'<', ..] => (2, Some(Use::HereDoc { tabs: false })),
            [_, b'&', b'0'..=b'9' | b'-', tail @ ..] => {
                let digits = tail.iter().take_while(|b| b.is_ascii_digit()).count();
                (digits.saturating_add(3), None)
            }
            [b'>', b'>' | b'|' | b'&', ..] | [b'<', b'>', ..] => {
                (2, Some(Use::Redirect { out: true, stderr }))
            }
            _ => (1, Some(Use::Redirect { out, stderr })),
        };
        self.skip(length);
        open.next = next;
    }

    /// Reads the bodies of the here-documents that the line behind us opened.
    fn here_documents(&mut self, open: &mut Open) {
        for (place, delimiter, tabs) in std::mem::take(&mut open.here) {
            let start = self.at;
            let mut end = self.text.len();
            while self.at < self.text.len() {
                let before = self.at;
                let line = self.until(b'\n');
                let line = line.strip_suffix('\r').unwrap_or(line);
                let line = if tabs { line.trim_start_matches('\t') } else { line };
                if line == delimiter {
                    end = before;
                    break;
                }
            }
            let body = self.text.get(start..end).unwrap_or_default();
            if let Some(command) = place.and_then(|place| self.script.commands.get_mut(place)) {
                command.input.push(body.to_owned());
            }
        }
    }

    fn end(&mut self, open: &mut Open, join: Join) {
        open.end_word();
        open.next = None;
        let fresh = Command { words: Vec::new(), redirects: Vec::new(), input: Vec::new(), join };
        let mut command = std::mem::replace(&mut open.command, fresh);
        self.keywords(&mut command.words);
        let mut here = false;
        // Those without a place are the newest.
        for (place, ..) in open.here.iter_mut().rev().take_while(|(place, ..)| place.is_none()) {
            *place = Some(self.script.commands.len());
            here = true;
        }
        let empty =
            command.words.is_empty() && command.redirects.is_empty() && command.input.is_empty();
        if empty && !here {
            if open.command.join == Join::Then {
                open.command.join = command.join;
            }
        } else if self.script.commands.len() < MAX_COMMANDS {
            self.script.commands.push(command);
        } else {
            self.script.overflow = true;
        }
    }

    /// Takes the reserved words off the front.
    fn keywords(&mut self, words: &mut Vec<Word>) {
        let mut gone = 0_usize;
        for word in words.iter() {
            if word.quoted {
                break;
            }
            match word.text.as_str() {
                "if" | "then" | "elif" | "else" | "do" | "while" | "until" | "!" | "{" | "}"
                | "fi" | "done" | "esac" | "coproc" => gone = gone.saturating_add(1),
                "for" | "select" | "case" | "function" => {
                    gone = words.len();
                    break;
                }
                _ => break,
            }
        }
        self.script.compound |= gone > 0;
        words.drain(..gone);
    }
}
