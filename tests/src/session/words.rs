//! What generated sessions speak of: files that change, terms, commands.

use compactd_core::note;
use serde_json::{Value, json};

use super::Rng;

/// Terms of every kind; few, so that they meet again.
const TERMS: [&str; 22] = [
    "src/cart.rs",
    "/work/app/src/cart.rs",
    "./run.sh",
    "~/notes/todo.md",
    "cart_total",
    "parseItem",
    "widget-frame",
    "$rootScope",
    "4096",
    "31,337",
    "2026_11",
    "\"the quoted thing\"",
    "`another quoted one`",
    "'single quoted text'",
    "https://example.org/docs/a.html",
    "C:\\work\\x.ini",
    "größe_wert_x",
    "lib/deep/er/mod.rs",
    "error_code_7",
    "😀 emoji_term",
    "plain_one",
    "E4711",
];

const WORDS: [&str; 14] = [
    "the", "total", "is", "off", "by", "one", "now", "look", "at", "what", "changed", "here",
    "and", "ok",
];

const RULES: [&str; 7] = ["must", "Never", "ALWAYS", "do not", "don't", "don’t", "mustard"];

pub(super) const FILES: [&str; 6] = [
    "/work/app/src/cart.rs",
    "/work/app/src/a/mod.rs",
    "/work/app/src/b/mod.rs",
    "/work/app/README.md",
    "/work/app/conf.toml",
    "/work/other/cart.rs",
];

const LONG_LINES: [&str; 5] = [
    "fn cart_total(items: &[Item]) -> u64 { items.iter().map(price).sum() }",
    "the widget frame is drawn twice when the cart is empty, see parseItem",
    "assertion failed: left 4096 right 31,337 in cart_total at line nine",
    "let rootScope = compile_everything(and, then, some, more, arguments);",
    "warning: unused variable `another quoted one` in the inner module",
];

/// The state of a generated world.
#[derive(Debug, Default)]
pub(super) struct World {
    versions: [u64; FILES.len()],
    /// Lines that some result has shown and that can be quoted.
    shown: Vec<String>,
    calls: usize,
}

/// A call as any host makes it.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) act: Act,
    pub(super) output: String,
    pub(super) error: bool,
    pub(super) image: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Act {
    Read { file: usize, from: usize, lines: usize },
    Shell { command: String },
    Edit { file: usize, old: String, new: String },
    Write { file: usize, content: String },
    Other { name: &'static str, input: Value },
}

impl World {
    /// A few words, some of them terms.
    pub(super) fn prose(&mut self, rng: &mut Rng) -> String {
        let mut text = String::new();
        for _ in 0..1 + rng.below(6) {
            text.push_str(if rng.chance(35) { rng.pick(&TERMS) } else { rng.pick(&WORDS) });
            text.push(if rng.chance(12) { '\n' } else { ' ' });
        }
        text
    }

    /// What the model says: maybe with a quoted line or a rule in it.
    pub(super) fn spoken(&mut self, rng: &mut Rng) -> String {
        if rng.chance(4) {
            return " \n".to_owned();
        }
        let mut text = self.prose(rng);
        if rng.chance(9) {
            text.push_str(rng.pick(&RULES));
            text.push_str(" do that ");
        }
        if !self.shown.is_empty() && rng.chance(9) {
            let line = rng.pick(&self.shown);
            let mark = rng.pick(&["", "> ", "- ", "  `", "1. ", "* > "]);
            text = format!("{text}\n{mark}{line}{}\n", if mark.ends_with('`') { "`" } else { "" });
        }
        if rng.chance(2) {
            text.push_str(&note::dropped(1234));
        }
        if rng.chance(10) {
            // Long enough to be shortened; what comes last may be why a result stays.
            for _ in 0..8 + rng.below(14) {
                let more = self.prose(rng);
                text = if rng.chance(50) { text + &more } else { more + &text };
            }
            text.push_str(&"and so on ".repeat(rng.below(90)));
            if rng.chance(8) {
                text = note::cut_text(&text, 100);
            }
        }
        text
    }

    /// Many lines with terms in them.
    fn output(&mut self, rng: &mut Rng) -> String {
        let lines = match rng.below(10) {
            0 => 0,
            1..=4 => 1 + rng.below(3),
            5..=7 => 3 + rng.below(6),
            _ => 10 + rng.below(12),
        };
        let mut text = String::new();
        for _ in 0..lines {
            match rng.below(8) {
                0 => {
                    let line = rng.pick(&LONG_LINES);
                    self.shown.push(line.to_owned());
                    text.push_str(line);
                }
                1 => text.push_str("error: cannot open src/cart.rs"),
                _ => text.push_str(self.prose(rng).trim_end()),
            }
            text.push('\n');
        }
        text
    }

    fn file_lines(&self, file: usize) -> Vec<String> {
        let version = self.versions[file];
        let mut rng = Rng::new(version * 64 + file as u64);
        let count = 4 + rng.below(9);
        (0..count)
            .map(|number| match rng.below(6) {
                0 => String::new(),
                1 => "}".to_owned(),
                2 => rng.pick(&LONG_LINES).to_owned(),
                3 => format!("let {} = {};", rng.pick(&TERMS), rng.pick(&TERMS)),
                _ => format!("line {number} of version {} {}", version % 3, rng.pick(&WORDS)),
            })
            .collect()
    }

    /// Some lines of a file as a tool shows them.
    fn shown_lines(&mut self, rng: &mut Rng, file: usize, from: usize, lines: usize) -> String {
        let all = self.file_lines(file);
        let style = rng.below(4);
        let mut text = String::new();
        for (number, line) in all.iter().enumerate().skip(from).take(lines) {
            match style {
                0 => text.push_str(&[&format!("{:>6}\t", number + 1), line, "\n"].concat()),
                1 => text.push_str(&[&format!("{:>6}→", number + 1), line, "\n"].concat()),
                _ => text.push_str(&[line, "\n"].concat()),
            }
            if line.chars().count() >= 40 {
                self.shown.push(line.clone());
            }
        }
        if rng.chance(15) {
            text.push_str("\n<system-reminder>\nmind the 4096 plain_one\n</system-reminder>\n");
        }
        text
    }

    fn long_text(&mut self, rng: &mut Rng) -> String {
        let filler = if rng.chance(20) { "é " } else { "x " };
        let mut text = self.prose(rng);
        text.push_str(&filler.repeat(rng.below(260)));
        text.push_str(&self.prose(rng));
        text
    }

    /// A call and what it answers.
    pub(super) fn call(&mut self, rng: &mut Rng) -> Call {
        self.calls += 1;
        // No two calls share an id, but for copies: hosts draw ids at random.
        let id = format!("call_{}", self.calls);
        let file = rng.below(FILES.len());
        let (act, mut output) = match rng.below(20) {
            0..=5 => {
                let (from, lines) = part(rng);
                (Act::Read { file, from, lines }, self.shown_lines(rng, file, from, lines))
            }
            6 => {
                let (from, lines) = part(rng);
                let path = FILES[file];
                let short = path.strip_prefix("/work/app/").unwrap_or(path);
                let command = match rng.below(6) {
                    0 => format!("cat {path}"),
                    1 => format!("cat {short} | head -{lines}"),
                    2 => format!("cd /work/app && cat {short}"),
                    3 => format!("nl -ba {path} | sed -n '{},{}p'", from + 1, from + lines),
                    _ => format!("sed -n '{},{}p' {path}", from + 1, from + lines),
                };
                (Act::Shell { command }, self.shown_lines(rng, file, from, lines))
            }
            7 | 8 => {
                self.versions[file] += 1 + rng.number() % 2;
                let old = if rng.chance(40) { self.long_text(rng) } else { self.prose(rng) };
                let new = if rng.chance(40) { self.long_text(rng) } else { self.prose(rng) };
                (Act::Edit { file, old, new }, format!("The file {} was changed.", FILES[file]))
            }
            9 => {
                self.versions[file] += 1;
                let content = self.long_text(rng);
                let output = if rng.chance(50) { "ok".to_owned() } else { self.output(rng) };
                (Act::Write { file, content }, output)
            }
            10 | 11 => {
                let command = self.rerunnable(rng);
                let mut output = self.output(rng).repeat(1 + rng.below(4));
                if rng.chance(25) {
                    output.push_str("test result: 2 failed\n");
                }
                (Act::Shell { command }, output)
            }
            12 => {
                let path = FILES[file];
                self.versions[file] += 1;
                let words = self.prose(rng).replace(['\n', '\'', '`', '"'], " ");
                let command = match rng.below(5) {
                    0 => format!("echo '{words}' > {path}"),
                    1 => format!("sed -i 's/a/b/' {path}"),
                    2 => "git checkout .".to_owned(),
                    3 => format!("tee {path} << EOF\n{}\nEOF", self.long_text(rng)),
                    _ => format!("cp /tmp/x {path}"),
                };
                (Act::Shell { command }, self.output(rng))
            }
            13..=16 => {
                let words = self.prose(rng).replace(['\n', '\'', '`', '"'], " ");
                let mut command = format!("grep -rn '{words}' src");
                if rng.chance(15) {
                    command = format!("echo {}", self.long_text(rng));
                }
                (Act::Shell { command }, self.output(rng))
            }
            _ => self.other(rng),
        };
        if rng.chance(8) {
            // As large as real ones.
            output = output.repeat(2_500 / output.len().max(1) + 1);
        }
        if rng.chance(3) {
            output = "File unchanged since last read. The content is still current.".to_owned();
        }
        if rng.chance(3) {
            output = match rng.below(6) {
                4 => note::NON_TEXT.to_owned(),
                5 => format!("{}\n{}", self.output(rng), note::NON_TEXT),
                0 => note::dropped(rng.below(5000)),
                1 => format!("{}\n", note::dropped(17)),
                2 => format!(
                    "{}[output cut by compactd: 9 of 7 chars removed; re-run the call to see it]",
                    self.prose(rng)
                ),
                _ => {
                    let long = self.output(rng) + &"tail ".repeat(90);
                    note::cut(&long, 200).map_or(long, |cut| cut.left)
                }
            };
        }
        Call { id, act, output, error: rng.chance(7), image: rng.chance(3) }
    }

    fn rerunnable(&mut self, rng: &mut Rng) -> String {
        let words = [
            "ls -la src",
            "git status",
            "git log --oneline",
            "npm test",
            "cargo test",
            "pytest -q",
            "cargo build",
            "git diff src/cart.rs",
        ];
        rng.pick(&words).to_owned()
    }

    fn other(&mut self, rng: &mut Rng) -> (Act, String) {
        let query = self.prose(rng);
        let act = match rng.below(6) {
            5 if rng.chance(50) => Act::Other {
                name: "WebFetch",
                input: json!({"url": "https://a.example/", "prompt": query}),
            },
            5 => Act::Shell { command: "curl -s https://a.example/x".to_owned() },
            0 => Act::Other {
                name: "Grep",
                input: json!({"pattern": query, "path": "/work/app/src"}),
            },
            1 => Act::Other {
                name: "TodoWrite",
                input: json!({"todos": [{"content": query, "n": 4096}, {"content": self.long_text(rng)}]}),
            },
            2 => Act::Other {
                name: "mcp__server__tool",
                input: json!({"q": query, "deep": {"list": [1, "cart_total", null, true]}}),
            },
            3 => {
                // Longer than what is searched as text.
                let long = self.long_text(rng) + &"filler words ".repeat(330) + &self.prose(rng);
                Act::Other { name: "Task", input: json!({"prompt": long, "description": query}) }
            }
            _ => Act::Other { name: "Agent", input: json!({"prompt": self.long_text(rng)}) },
        };
        let output = self.output(rng);
        (act, output)
    }
}

fn part(rng: &mut Rng) -> (usize, usize) {
    match rng.below(4) {
        0 | 1 => (0, 2000),
        2 => (0, 1 + rng.below(6)),
        _ => (rng.below(5), 1 + rng.below(6)),
    }
}
