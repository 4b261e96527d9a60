//! A Claude Code session made from a seed: a project of source files that are read, edited,
//! searched and tested, with an assistant who talks about what it saw. Rows have the fields and the
//! order of fields that the host writes, `toolUseResult` with its second copy of the text included.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::words::{Dice, NOUNS, PROSE, VERBS};

/// Lines of an average source file, where texts are as long as real ones.
pub(crate) const USUAL_LINES: usize = 160;

/// How a session looks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) seed: u64,
    /// Lines of an average source file; other results are as much shorter or longer.
    pub(crate) file_lines: usize,
    /// It ends with so many results, or at so many bytes.
    pub(crate) results: usize,
    pub(crate) bytes: usize,
}

/// A row of the context, as a caller names it in a compaction request.
#[derive(Debug, Clone)]
pub(crate) struct ContextRow {
    pub(crate) uuid: String,
    pub(crate) assistant: bool,
    pub(crate) ids: Vec<String>,
    pub(crate) chars: usize,
    pub(crate) is_error: bool,
}

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) lines: Vec<String>,
    pub(crate) rows: Vec<ContextRow>,
    pub(crate) results: usize,
}

/// A session of about so many megabytes, with texts as long as real ones.
pub(crate) fn megabytes(megabytes: usize) -> Session {
    let bytes = megabytes * 1_000_000;
    session(Shape { seed: 1, file_lines: USUAL_LINES, results: usize::MAX, bytes })
}

/// A session of so many results, with short texts so that very many are made quickly.
pub(crate) fn results(results: usize) -> Session {
    let file_lines = if results > 20_000 { 8 } else { 24 };
    session(Shape { seed: results as u64, file_lines, results, bytes: usize::MAX })
}

pub(crate) fn session(shape: Shape) -> Session {
    let mut writer = Writer::new(shape);
    writer.prompt();
    while writer.session.results < shape.results && writer.bytes < shape.bytes {
        writer.step();
    }
    writer.says();
    writer.session
}

impl Session {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for line in &self.lines {
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
        }
        bytes
    }

    pub(crate) fn slices(&self) -> Vec<&[u8]> {
        self.lines.iter().map(String::as_bytes).collect()
    }
}

struct SourceFile {
    path: String,
    text: Vec<String>,
}

struct Writer {
    dice: Dice,
    shape: Shape,
    session: Session,
    bytes: usize,
    files: Vec<SourceFile>,
    names: Vec<String>,
    parent: Option<String>,
    /// Names that stood in results, the newest last.
    seen: Vec<String>,
    /// Lines of results, to be quoted.
    quotable: Vec<String>,
    steps: usize,
}

impl Writer {
    fn new(shape: Shape) -> Self {
        let mut dice = Dice::new(shape.seed);
        let id = uuid(&mut dice);
        let names = (0..4000).map(|_| name(&mut dice)).collect::<Vec<_>>();
        let mut files = Vec::new();
        for number in 0..240 {
            let extension = ["rs", "ts", "py", "go"][number % 4];
            let folder = dice.pick(&NOUNS);
            let stem = format!("{}_{}", dice.pick(&NOUNS), dice.pick(&NOUNS));
            let path = format!("/work/app/src/{folder}/{stem}_{number}.{extension}");
            let lines = shape.file_lines / 2 + dice.below(shape.file_lines);
            let text = (0..lines).map(|_| code_line(&mut dice, &names)).collect();
            files.push(SourceFile { path, text });
        }
        let session = Session { id, lines: Vec::new(), rows: Vec::new(), results: 0 };
        Self {
            dice,
            shape,
            session,
            bytes: 0,
            files,
            names,
            parent: None,
            seen: Vec::new(),
            quotable: Vec::new(),
            steps: 0,
        }
    }

    /// One turn of the assistant: perhaps a text, one or two calls, their results.
    fn step(&mut self) {
        self.steps += 1;
        if self.steps.is_multiple_of(40) {
            self.says();
            self.prompt();
        }
        let message = format!("msg_01{}", token(&mut self.dice, 22));
        if self.dice.chance(55) {
            let text = self.prose();
            self.assistant(
                &message,
                &json!({"type": "text", "text": text}),
                Vec::new(),
                text.len(),
            );
        }
        let calls = if self.dice.chance(15) { 2 } else { 1 };
        let mut open = Vec::new();
        for _ in 0..calls {
            let id = format!("toolu_01{}", token(&mut self.dice, 22));
            let call = self.call();
            let chars = call.input.to_string().len();
            let block =
                json!({"type": "tool_use", "id": id, "name": call.tool, "input": call.input});
            self.assistant(&message, &block, vec![id.clone()], chars);
            open.push((id, call));
        }
        for (id, call) in open {
            self.result(&id, call);
        }
    }

    fn call(&mut self) -> Made {
        match self.dice.below(100) {
            0..38 => self.read(),
            38..56 => self.edit(),
            56..70 => self.grep(),
            70..82 => self.tests(),
            82..90 => self.listing(),
            _ => self.log(),
        }
    }

    fn read(&mut self) -> Made {
        let at = self.dice.low(self.files.len());
        let file = &self.files[at];
        let content = file.text.join("\n");
        let mut text = String::with_capacity(content.len() + file.text.len() * 8);
        for (number, line) in file.text.iter().enumerate() {
            let _infallible = writeln!(text, "{:>6}→{line}", number + 1);
        }
        text.push_str("\n<system-reminder>\nWhenever you read a file, consider whether it looks malicious.\n</system-reminder>\n");
        let extra = json!({"type": "text", "file": {"filePath": file.path, "content": content,
            "numLines": file.text.len(), "startLine": 1, "totalLines": file.text.len()}});
        Made::new("Read", json!({"file_path": file.path}), text, extra)
    }

    fn edit(&mut self) -> Made {
        let at = self.dice.low(self.files.len());
        let place = self.dice.below(self.files[at].text.len().saturating_sub(6).max(1));
        let new: Vec<String> = (0..5).map(|_| code_line(&mut self.dice, &self.names)).collect();
        let file = &mut self.files[at];
        let end = (place + 5).min(file.text.len());
        let old: Vec<String> = file.text.splice(place..end, new.clone()).collect();
        let (old, new) = (old.join("\n"), new.join("\n"));
        let mut text = format!(
            "The file {} has been updated. Here's the result of running `cat -n` on a snippet of the edited file:\n",
            file.path
        );
        for (number, line) in file.text.iter().enumerate().skip(place).take(9) {
            let _infallible = writeln!(text, "{:>6}→{line}", number + 1);
        }
        let extra = json!({"filePath": file.path, "oldString": old, "newString": new,
            "originalFile": file.text.join("\n"), "structuredPatch": [], "userModified": false});
        let input = json!({"file_path": file.path, "old_string": old, "new_string": new});
        Made::new("Edit", input, text, extra)
    }

    fn grep(&mut self) -> Made {
        let at = self.dice.below(self.names.len());
        let pattern = self.names[at].clone();
        let mut text = String::new();
        for _ in 0..self.lines(6, 40) {
            let file = &self.files[self.dice.below(self.files.len())];
            let line = self.dice.below(file.text.len());
            let _infallible = writeln!(text, "{}:{}:{}", file.path, line + 1, file.text[line]);
        }
        let extra = json!({"mode": "content", "numFiles": 0, "content": text});
        Made::new("Grep", json!({"pattern": pattern, "output_mode": "content"}), text, extra)
    }

    fn tests(&mut self) -> Made {
        let fails = self.dice.chance(20);
        let mut text = String::from("   Compiling app v0.4.2 (/work/app)\n");
        for _ in 0..self.lines(20, 60) {
            let name = self.name();
            let _infallible =
                writeln!(text, "test {}::tests::{name} ... ok", self.dice.pick(&NOUNS));
        }
        if fails {
            let name = self.name();
            let _infallible = writeln!(
                text,
                "thread '{name}' panicked at src/{}/mod.rs:{}:9:\nassertion failed: `(left == right)`\n  left: `{}`,\n right: `{}`",
                self.dice.pick(&NOUNS),
                self.dice.below(900),
                self.dice.below(100_000),
                self.dice.below(100_000)
            );
        }
        let _infallible = writeln!(text, "test result: {}", if fails { "FAILED" } else { "ok" });
        let mut made = Made::shell("cargo test --workspace", text);
        made.is_error = fails;
        made
    }

    fn listing(&mut self) -> Made {
        let folder = self.dice.pick(&NOUNS);
        let mut text = String::new();
        for _ in 0..self.lines(5, 30) {
            let file = &self.files[self.dice.below(self.files.len())];
            let stem = file.path.rsplit('/').next().unwrap_or_default();
            let size = self.dice.below(90_000);
            let _infallible =
                writeln!(text, "-rw-r--r-- 1 dev dev {size:>6} Mar  4 12:{:02} {stem}", size % 60);
        }
        Made::shell(&format!("ls -la src/{folder}"), text)
    }

    fn log(&mut self) -> Made {
        let mut text = String::new();
        for number in 0..self.lines(30, 120) {
            let (verb, noun) = (self.dice.pick(&VERBS), self.dice.pick(&NOUNS));
            let level = ["INFO", "DEBUG", "WARN", "ERROR"][self.dice.low(4)];
            let _infallible = writeln!(
                text,
                "2026-03-04T12:{:02}:{:02}.{:03}Z {level} app::{noun}: {verb} {noun} id={} took_us={} \"{}\"",
                number / 60 % 60,
                number % 60,
                self.dice.below(1000),
                self.dice.below(1_000_000),
                self.dice.below(90_000),
                sentence(&mut self.dice, 6)
            );
        }
        Made::shell(&format!("tail -n 150 /var/log/app/{}.log", self.dice.pick(&NOUNS)), text)
    }

    /// How many lines a result has whose like has so many in a session of the usual shape.
    fn lines(&mut self, least: usize, more: usize) -> usize {
        ((least + self.dice.below(more)) * self.shape.file_lines / USUAL_LINES).max(2)
    }

    fn name(&mut self) -> String {
        let at = self.dice.low(self.names.len());
        self.names[at].clone()
    }

    fn prose(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..2 + self.dice.below(5) {
            text.push_str(&sentence(&mut self.dice, 12));
            if !self.seen.is_empty() && self.dice.chance(60) {
                let back = self.dice.low(self.seen.len().min(400));
                let _infallible = write!(text, " `{}`", self.seen[self.seen.len() - 1 - back]);
            }
            text.push_str(". ");
        }
        if !self.quotable.is_empty() && self.dice.chance(8) {
            let back = self.dice.low(self.quotable.len().min(60));
            let _infallible =
                write!(text, "\n\n> {}\n", self.quotable[self.quotable.len() - 1 - back]);
        }
        if self.dice.chance(2) {
            text.push_str("\n\nThis must never change.");
        }
        text
    }

    fn says(&mut self) {
        let message = format!("msg_01{}", token(&mut self.dice, 22));
        let text = self.prose();
        self.assistant(&message, &json!({"type": "text", "text": text}), Vec::new(), text.len());
    }

    fn prompt(&mut self) {
        let text = sentence(&mut self.dice, 25);
        let content = json!(text);
        self.user(&content, None, Vec::new(), text.len(), false);
    }

    fn result(&mut self, id: &str, made: Made) {
        for _ in 0..4 {
            let lines: Vec<&str> = made.text.lines().collect();
            let line = lines[self.dice.below(lines.len())].trim();
            if let Some(name) =
                line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).find(|word| {
                    word.len() > 6
                        && (word.contains('_') || word.bytes().any(|b| b.is_ascii_uppercase()))
                })
            {
                self.seen.push(name.to_owned());
            }
            if line.len() > 45 {
                let line = line.split_once('→').map_or(line, |(_, rest)| rest);
                self.quotable.push(line.trim().to_owned());
            }
        }
        let mut block = json!({"tool_use_id": id, "type": "tool_result", "content": made.text});
        if made.is_error {
            block["is_error"] = json!(true);
        }
        let chars = made.text.chars().count();
        let extra = if made.is_error { json!(format!("Error: {}", made.text)) } else { made.extra };
        self.user(&json!([block]), Some(&extra), vec![id.to_owned()], chars, made.is_error);
        self.session.results += 1;
    }

    fn assistant(&mut self, message: &str, block: &Value, ids: Vec<String>, chars: usize) {
        let request = token(&mut self.dice, 22);
        let (read, out) = (self.dice.below(150_000), self.dice.below(2000));
        let head = self.head();
        let uuid = uuid(&mut self.dice);
        let line = format!(
            r#"{head},"message":{{"id":"{message}","type":"message","role":"assistant","model":"claude-opus-4-5-20251101","content":[{block}],"stop_reason":null,"stop_sequence":null,"usage":{{"input_tokens":4,"cache_creation_input_tokens":{out},"cache_read_input_tokens":{read},"cache_creation":{{"ephemeral_5m_input_tokens":{out},"ephemeral_1h_input_tokens":0}},"output_tokens":{out},"service_tier":"standard"}}}},"requestId":"req_011{request}","type":"assistant","uuid":"{uuid}","timestamp":"{}"}}"#,
            self.timestamp()
        );
        self.push(uuid, line, true, ids, chars, false);
    }

    fn user(
        &mut self,
        content: &Value,
        extra: Option<&Value>,
        ids: Vec<String>,
        chars: usize,
        is_error: bool,
    ) {
        let head = self.head();
        let uuid = uuid(&mut self.dice);
        let extra = extra.map(|extra| format!(r#","toolUseResult":{extra}"#)).unwrap_or_default();
        let line = format!(
            r#"{head},"type":"user","message":{{"role":"user","content":{content}}},"uuid":"{uuid}","timestamp":"{}"{extra}}}"#,
            self.timestamp()
        );
        self.push(uuid, line, false, ids, chars, is_error);
    }

    fn head(&self) -> String {
        let parent =
            self.parent.as_ref().map_or_else(|| "null".to_owned(), |uuid| format!("\"{uuid}\""));
        format!(
            r#"{{"parentUuid":{parent},"isSidechain":false,"userType":"external","cwd":"/work/app","sessionId":"{}","version":"2.1.100","gitBranch":"main""#,
            self.session.id
        )
    }

    fn timestamp(&self) -> String {
        let seconds = self.session.lines.len();
        format!(
            "2026-03-{:02}T{:02}:{:02}:{:02}.000Z",
            1 + seconds / 86_400 % 28,
            seconds / 3600 % 24,
            seconds / 60 % 60,
            seconds % 60
        )
    }

    fn push(
        &mut self,
        uuid: String,
        line: String,
        assistant: bool,
        ids: Vec<String>,
        chars: usize,
        is_error: bool,
    ) {
        self.bytes += line.len() + 1;
        self.session.lines.push(line);
        self.parent = Some(uuid.clone());
        self.session.rows.push(ContextRow { uuid, assistant, ids, chars, is_error });
    }
}

/// A call with the result that it will get.
struct Made {
    tool: &'static str,
    input: Value,
    text: String,
    /// `toolUseResult`
    extra: Value,
    is_error: bool,
}

impl Made {
    fn new(tool: &'static str, input: Value, text: String, extra: Value) -> Self {
        Self { tool, input, text, extra, is_error: false }
    }

    fn shell(command: &str, text: String) -> Self {
        let extra = json!({"stdout": text, "stderr": "", "interrupted": false, "isImage": false});
        let input = json!({"command": command, "description": "Looks at the project"});
        Self::new("Bash", input, text, extra)
    }
}

fn uuid(dice: &mut Dice) -> String {
    let (a, b) = (dice.next(), dice.next());
    format!(
        "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
        a >> 32,
        (a >> 16) & 0xffff,
        a & 0xfff,
        (b >> 52) & 0xfff,
        b & 0xffff_ffff_ffff
    )
}

fn token(dice: &mut Dice, length: usize) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    (0..length).map(|_| char::from(LETTERS[dice.below(LETTERS.len())])).collect()
}

/// `parse_header`, `parseHeader`, `header_cache_limit` …
fn name(dice: &mut Dice) -> String {
    let (verb, a, b) = (dice.pick(&VERBS), dice.pick(&NOUNS), dice.pick(&NOUNS));
    let upper = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    match dice.below(4) {
        0 => format!("{verb}_{a}"),
        1 => format!("{verb}{}{}", upper(a), upper(b)),
        2 => format!("{a}_{b}_{}", dice.below(100)),
        _ => format!("{verb}_{a}_{b}"),
    }
}

fn sentence(dice: &mut Dice, words: usize) -> String {
    let words: Vec<&str> = (0..words / 2 + dice.below(words)).map(|_| dice.pick(&PROSE)).collect();
    words.join(" ")
}

fn code_line(dice: &mut Dice, names: &[String]) -> String {
    let indent = "    ".repeat(dice.below(4));
    let low = |dice: &mut Dice| names[dice.low(names.len())].as_str();
    let (a, b, c) = (low(dice), low(dice), low(dice));
    let (x, y) = (dice.pick(&NOUNS), dice.pick(&NOUNS));
    match dice.below(14) {
        0 | 1 => format!("{indent}let {x} = self.{a}(&{y}, {});", dice.below(5000)),
        2 => format!("{indent}pub fn {a}({x}: &str, {y}: usize) -> Result<{b}, Error> {{"),
        3 => format!("{indent}// {}", sentence(dice, 14)),
        4 => format!("{indent}if {x}.{a} != {y} && !{b}({x}) {{"),
        5 => format!("{indent}return Err(Error::new(\"cannot {} {x}\", {a}));", dice.pick(&VERBS)),
        6 => format!("{indent}}}"),
        7 => String::new(),
        8 => format!("{indent}{x}.push({a}({b}, {y})?);"),
        9 => format!("{indent}for {x} in {a}.iter().filter(|{y}| {y}.{b} > {}) {{", dice.below(90)),
        10 => format!("{indent}use crate::{x}::{{{a}, {b}, {c}}};"),
        11 => {
            format!("{indent}assert_eq!({a}({}), \"{}\");", dice.below(90_000), sentence(dice, 4))
        }
        12 => format!(
            "{indent}\"{x}\": {{\"{y}\": {}, \"{a}\": \"src/{x}/{y}.rs\"}},",
            dice.below(900)
        ),
        _ => format!("{indent}self.{x}.{a} = {b}::{c}({y});"),
    }
}
