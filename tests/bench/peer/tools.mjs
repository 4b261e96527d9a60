// What a tool call does: the tables of `daemon/core/src/tools`, ported for the peer.

const RERUNNABLE = ["ls", "pwd", "tree", "git status", "git log", "git branch", "git diff --stat"];
const EVEN_IF_USED = ["ls", "git status", "git log", "npm test"];
const RERUNNABLE_TESTS = [
  "npm test", "pnpm test", "yarn test", "bun test", "cargo test", "cargo nextest", "go test",
  "pytest", "python -m pytest", "python3 -m pytest", "make test", "npx jest", "npx vitest",
];

// ---- paths

const drive = (path) => /^[A-Za-z]:(?:$|[/\\])/.test(path);
const absolute = (path) => /^[/~]/.test(path) || drive(path) || path.startsWith("\\\\");

export function normalise(path, cwd) {
  if (path === "") return "";
  const base = absolute(path) || !cwd ? null : cwd;
  const lead = base ?? path;
  const windows = drive(lead) || path.startsWith("\\\\");
  const escape = base === null && path.startsWith("\\") && !path.startsWith("\\\\");
  const rooted = /^[/\\]/.test(lead) && !escape;
  const fixed = !rooted && absolute(lead) ? 1 : 0;
  const parts = [];
  let up = 0;
  const separator = windows ? /[/\\]/ : "/";
  for (const part of [...(base ?? "").split(separator), ...path.split(separator)]) {
    if (part === "" || part === ".") continue;
    if (part !== "..") parts.push(part);
    else if (parts.length > fixed) parts.pop();
    else if (!rooted && fixed !== 1) up += 1;
  }
  let out = (rooted ? "/" : "") + "../".repeat(up) + parts.join("/");
  if (out.length > 1 && out.endsWith("/")) out = out.slice(0, -1);
  return out === "" ? "." : out;
}

export function last(path) {
  const trimmed = path.replace(/[/\\]+$/, "");
  return trimmed.slice(Math.max(trimmed.lastIndexOf("/"), trimmed.lastIndexOf("\\")) + 1);
}

function fileLike(component) {
  const at = component.lastIndexOf(".");
  if (at < 0) return false;
  const [stem, extension] = [component.slice(0, at), component.slice(at + 1)];
  if (stem === "") return extension.length > 1 && /^[A-Za-z0-9]+$/.test(extension);
  return /^[A-Za-z0-9]{1,8}$/.test(extension) && /[A-Za-z]/.test(extension) && /[^.]/.test(stem);
}

// ---- the shell lexer

const MAX_DEPTH = 24;
const MAX_COMMANDS = 4096;
const KEYWORDS = new Set(["if", "then", "elif", "else", "do", "while", "until", "!", "{", "}",
  "fi", "done", "esac", "coproc"]);
const WHOLE_KEYWORDS = new Set(["for", "select", "case", "function"]);
const firstChar = (text) => (text === "" ? "" : String.fromCodePoint(text.codePointAt(0)));

export function parse(text) {
  const lexer = new Lexer(text, 0, { commands: [], overflow: false, compound: false });
  lexer.list(false);
  return lexer.script;
}

const command = (join) => ({ words: [], redirects: [], input: [], join });

class Open {
  constructor() {
    this.command = command("then");
    this.current = null;
    this.next = null;
    this.here = [];
  }
  word() {
    this.current ??= { text: "", quoted: false, live: false };
    return this.current;
  }
  push(text) {
    this.word().text += text;
  }
  endWord() {
    const word = this.current;
    if (!word) return;
    this.current = null;
    const next = this.next;
    this.next = null;
    if (!next) this.command.words.push(word);
    else if (next.kind === "redirect") {
      this.command.redirects.push({ out: next.out, stderr: next.stderr, target: word });
    } else if (next.kind === "hereString") this.command.input.push(word.text);
    else this.here.push({ place: null, delimiter: word.text, tabs: next.tabs });
  }
}

class Lexer {
  constructor(text, depth, script) {
    this.text = text;
    this.at = 0;
    this.depth = depth;
    this.script = script;
  }
  peek(ahead) {
    return this.text[this.at + ahead] ?? "\0";
  }
  skip(count) {
    this.at = Math.min(this.at + count, this.text.length);
  }
  run(stops) {
    const first = firstChar(this.text.slice(this.at, this.at + 2)).length;
    let end = this.at + first;
    while (end < this.text.length && !stops.includes(this.text[end])) end += 1;
    const found = this.text.slice(this.at, end);
    this.at = end;
    return found;
  }
  runOne() {
    const found = firstChar(this.text.slice(this.at, this.at + 2));
    this.at += found.length;
    return found;
  }
  until(stop) {
    const end = this.text.indexOf(stop, this.at);
    const found = this.text.slice(this.at, end < 0 ? this.text.length : end);
    this.at = Math.min(this.at + found.length + 1, this.text.length);
    return found;
  }
  list(inside) {
    const open = new Open();
    while (this.at < this.text.length) {
      const byte = this.peek(0);
      if (byte === " " || byte === "\t" || byte === "\r") {
        this.skip(1);
        open.endWord();
      } else if (byte === "\n") {
        this.skip(1);
        this.end(open, "then");
        this.hereDocuments(open);
      } else if (byte === "#" && open.current === null) {
        const end = this.text.indexOf("\n", this.at);
        this.at = end < 0 ? this.text.length : end;
      } else if (byte === ";") {
        this.skip(1);
        this.end(open, "then");
      } else if (byte === "|") {
        const or = this.peek(1) === "|";
        this.skip(or || this.peek(1) === "&" ? 2 : 1);
        this.end(open, or ? "or" : "pipe");
      } else if (byte === "&" && this.peek(1) === ">") {
        open.endWord();
        this.skip(this.peek(2) === ">" ? 3 : 2);
        open.next = { kind: "redirect", out: true, stderr: false };
      } else if (byte === "&") {
        const and = this.peek(1) === "&";
        this.skip(and ? 2 : 1);
        this.script.compound ||= !and;
        this.end(open, and ? "and" : "then");
      } else if (byte === ")") {
        this.skip(1);
        this.end(open, "then");
        if (inside) return;
        this.script.compound = true;
      } else if (byte === "(") this.parenthesis(open);
      else if (byte === "<" || byte === ">") this.angle(open);
      else this.part(open);
    }
    this.end(open, "then");
  }
  parenthesis(open) {
    this.script.compound = true;
    if (open.current === null && open.command.words.length === 0 && this.peek(1) === "(") {
      this.arithmetic();
      return;
    }
    this.skip(1);
    if (open.current !== null && this.peek(0) === ")") {
      this.skip(1);
      open.current = null;
      return;
    }
    this.nested();
  }
  nested() {
    this.script.compound = true;
    if (this.depth < MAX_DEPTH) {
      this.depth += 1;
      this.list(true);
      this.depth -= 1;
    }
  }
  arithmetic() {
    let level = 0;
    while (this.at < this.text.length) {
      const byte = this.peek(0);
      this.skip(1);
      if (byte === "(") level += 1;
      else if (byte === ")") {
        if (level <= 1) return;
        level -= 1;
      }
    }
  }
  angle(open) {
    const out = this.peek(0) === ">";
    const test = open.command.words[0]?.text === "[[";
    const word = open.current;
    if (test || (out && word && !word.quoted && /[-=]$/.test(word.text))) {
      open.push(out ? ">" : "<");
      this.skip(1);
      return;
    }
    let stderr = false;
    if (word && !word.quoted && /^[0-9]{0,3}$/.test(word.text)) {
      open.current = null;
      stderr = word.text === "2";
    } else open.endWord();
    const rest = this.text.slice(this.at, this.at + 64);
    if (rest[1] === "(") {
      this.skip(2);
      this.nested();
      open.word().live = true;
      open.push("<()");
      return;
    }
    let length = 1;
    let next = { kind: "redirect", out, stderr };
    if (rest.startsWith("<<<")) [length, next] = [3, { kind: "hereString" }];
    else if (rest.startsWith("<<-")) [length, next] = [3, { kind: "hereDoc", tabs: true }];
    else if (rest.startsWith("<<")) [length, next] = [2, { kind: "hereDoc", tabs: false }];
    else if (/^.&[0-9-]/.test(rest)) [length, next] = [3 + /^[0-9]*/.exec(rest.slice(3))[0].length, null];
    else if (/^(?:>[>|&]|<>)/.test(rest)) [length, next] = [2, { kind: "redirect", out: true, stderr }];
    this.skip(length);
    open.next = next;
  }
  hereDocuments(open) {
    const here = open.here;
    open.here = [];
    for (const { place, delimiter, tabs } of here) {
      const start = this.at;
      let end = this.text.length;
      while (this.at < this.text.length) {
        const before = this.at;
        let line = this.until("\n").replace(/\r$/, "");
        if (tabs) line = line.replace(/^\t+/, "");
        if (line === delimiter) {
          end = before;
          break;
        }
      }
      const owner = place === null ? undefined : this.script.commands[place];
      owner?.input.push(this.text.slice(start, end));
    }
  }
  end(open, join) {
    open.endWord();
    open.next = null;
    const done = open.command;
    open.command = command(join);
    this.keywords(done.words);
    let here = false;
    for (const one of open.here) {
      if (one.place === null) {
        one.place = this.script.commands.length;
        here = true;
      }
    }
    if (!here && done.words.length + done.redirects.length + done.input.length === 0) {
      if (open.command.join === "then") open.command.join = done.join;
    } else if (this.script.commands.length < MAX_COMMANDS) this.script.commands.push(done);
    else this.script.overflow = true;
  }
  keywords(words) {
    let gone = 0;
    for (const word of words) {
      if (word.quoted) break;
      if (KEYWORDS.has(word.text)) gone += 1;
      else {
        if (WHOLE_KEYWORDS.has(word.text)) gone = words.length;
        break;
      }
    }
    this.script.compound ||= gone > 0;
    words.splice(0, gone);
  }
  part(open) {
    const byte = this.peek(0);
    if (byte === "'") {
      this.skip(1);
      open.word().quoted = true;
      open.push(this.until("'"));
    } else if (byte === '"') {
      this.skip(1);
      open.word().quoted = true;
      this.double(open);
    } else if (byte === "\\" && this.peek(1) === "\n") this.skip(2);
    else if (byte === "\\") {
      this.skip(1);
      open.word().quoted = true;
      open.push(this.runOne());
    } else if (byte === "$") this.dollar(open, false);
    else if (byte === "`") this.backtick(open);
    else {
      const text = this.run(" \t\r\n;|&()<>'\"\\$`");
      const word = open.word();
      word.live ||= /[*?[{]/.test(text);
      word.text += text;
    }
  }
  double(open) {
    while (this.at < this.text.length) {
      const byte = this.peek(0);
      if (byte === '"') {
        this.skip(1);
        return;
      }
      if (byte === "\\" && this.peek(1) === "\n") this.skip(2);
      else if (byte === "\\" && '"\\$`'.includes(this.peek(1))) {
        this.skip(1);
        open.push(this.runOne());
      } else if (byte === "$") this.dollar(open, true);
      else if (byte === "`") this.backtick(open);
      else open.push(this.run('"\\$`'));
    }
  }
  dollar(open, inDouble) {
    const next = this.peek(1);
    if (next === "(") {
      open.word().live = true;
      open.push("$()");
      this.skip(1);
      if (this.peek(1) === "(") {
        this.script.compound = true;
        this.arithmetic();
      } else {
        this.skip(1);
        this.nested();
      }
    } else if (next === "{") {
      open.word().live = true;
      let level = 0;
      const start = this.at;
      while (this.at < this.text.length) {
        const byte = this.peek(0);
        this.skip(1);
        if (byte === "{") level += 1;
        else if (byte === "}") {
          if (level <= 1) break;
          level -= 1;
        }
      }
      open.push(this.text.slice(start, this.at));
    } else if (next === "'" && !inDouble) {
      this.skip(2);
      open.word().quoted = true;
      this.ansi(open);
    } else if (next === '"' && !inDouble) this.skip(1);
    else {
      open.word().live ||= /[A-Za-z0-9_@*#?!$-]/.test(next);
      open.push("$");
      this.skip(1);
    }
  }
  ansi(open) {
    while (this.at < this.text.length) {
      const byte = this.peek(0);
      if (byte === "'") {
        this.skip(1);
        return;
      }
      if (byte === "\\") {
        this.skip(1);
        const one = this.runOne();
        open.push(one === "n" ? "\n" : one === "t" ? "\t" : one);
      } else open.push(this.run("'\\"));
    }
  }
  backtick(open) {
    this.skip(1);
    open.word().live = true;
    open.push("$()");
    this.script.compound = true;
    const start = this.at;
    let end = this.text.length;
    while (this.at < this.text.length) {
      const byte = this.peek(0);
      if (byte === "\\") this.skip(2);
      else if (byte === "`") {
        end = this.at;
        this.skip(1);
        break;
      } else this.skip(1);
    }
    if (this.depth >= MAX_DEPTH) return;
    new Lexer(this.text.slice(start, end), this.depth + 1, this.script).list(false);
  }
}

// ---- what a command line shows

const texts = (words) => words.map((word) => word.text);

function lineOf(script) {
  if (script.compound || script.overflow) return null;
  const dirs = [];
  let rest = script.commands;
  while (rest.length >= 2) {
    const [first, next] = rest;
    if (first.words.length !== 2) break;
    const [cd, dir] = first.words;
    if (cd.text !== "cd" || !["and", "then"].includes(next.join) || dirs.length >= 16) break;
    if (dir.live || dir.text.startsWith("-") || first.redirects.length > 0) return null;
    dirs.push(dir.text);
    rest = rest.slice(1);
  }
  const [main, ...filters] = rest;
  if (!main) return null;
  const quiet = (one) => one.input.length === 0
    && one.redirects.every((to) => to.out && to.stderr && to.target.text === "/dev/null");
  return quiet(main) && filters.every((one) => one.join === "pipe" && quiet(one))
    ? { dirs, main, filters } : null;
}

const SHOWS = {
  cat: [[], []],
  nl: [["-b", "-w", "-s", "-n", "-v", "-i", "-h", "-f", "-d", "-l"], []],
  head: [["-n", "-c", "--lines", "--bytes"], []],
  tail: [["-n", "-c", "--lines", "--bytes"], ["-f", "-F", "--follow"]],
  bat: [["-r", "--line-range", "-l", "--language", "--style", "--color", "--paging"], []],
};
SHOWS.batcat = SHOWS.bat;

function shown(words) {
  if (words.length === 0) return null;
  const [name, ...args] = words;
  if (name.text === "sed") return sed(args);
  if (!Object.hasOwn(SHOWS, name.text)) return null;
  const [valued, refused] = SHOWS[name.text];
  const out = [];
  let options = true;
  for (let at = 0; at < args.length; at += 1) {
    const { text } = args[at];
    if (!options || text.length < 2 || !/^[-+]/.test(text)) out.push(args[at]);
    else if (text === "--") options = false;
    else if (refused.includes(text)) return null;
    else if (valued.includes(text)) {
      at += 1;
      if (at >= args.length) return null;
    } else if (text.startsWith("+") && !/^\+[0-9]*$/.test(text)) out.push(args[at]);
  }
  return out;
}

function sed(args) {
  const out = [];
  let [silent, quits, scripts] = [false, true, 0];
  for (let at = 0; at < args.length; at += 1) {
    const { text } = args[at];
    let script;
    if (["-n", "--quiet", "--silent"].includes(text)) {
      silent = true;
      continue;
    } else if (["-E", "-r", "-u", "--"].includes(text)) continue;
    else if (text === "-e" || text === "-ne") {
      silent ||= text === "-ne";
      at += 1;
      script = args[at];
      if (!script) return null;
    } else if (text.length > 1 && text.startsWith("-")) return null;
    else if (scripts === 0) script = args[at];
    else {
      out.push(args[at]);
      continue;
    }
    if (!/^[0-9,;$pq{} \n]+$/.test(script.text)) return null;
    quits &&= !script.text.includes("p");
    scripts += 1;
  }
  return scripts > 0 && silent !== quits ? out : null;
}

function readOf(line, cwd) {
  const files = shown(line.main.words);
  if (files?.length !== 1) return null;
  const [file] = files;
  if (file.live || file.text === "" || file.text === "-") return null;
  const through = line.filters.every((filter) => shown(filter.words)?.every((w) => w.text === "-"));
  if (!through || file.text.startsWith("/dev/") || file.text.includes("\n")) return null;
  let at = cwd;
  for (const dir of line.dirs) at = normalise(dir, at);
  return normalise(file.text, at);
}

function shortenedAtMost({ filters }) {
  if (filters.length === 0) return true;
  const [filter] = filters;
  return filters.length === 1 && ["head", "tail"].includes(filter.words[0]?.text)
    && shown(filter.words)?.length === 0;
}

const PACKAGE_FLAGS = ["-s", "--silent", "-r", "--recursive", "-ws", "--workspaces"];
const PACKAGE_VALUED = ["--filter", "-F", "--prefix", "-C", "--dir", "--cwd", "-w", "--workspace", "workspace"];

function canonical(words) {
  const all = texts(words);
  if (all.length === 0) return all;
  const name = all[0];
  let [flags, valued] = [[], []];
  if (name === "git") [flags, valued] = [["--no-pager", "-P", "--no-optional-locks"], ["-C", "-c"]];
  else if (["npm", "pnpm", "yarn", "bun"].includes(name)) [flags, valued] = [PACKAGE_FLAGS, PACKAGE_VALUED];
  else if (name === "make") [flags, valued] = [["-s", "--silent"], ["-C", "-f"]];
  let at = 1;
  while (at < all.length) {
    const text = all[at];
    const glued = text.includes("=") && valued.includes(text.slice(0, text.indexOf("=")));
    if (valued.includes(text)) at += 1;
    else if (!(flags.includes(text) || glued || (name === "cargo" && text.startsWith("+")))) break;
    at += 1;
  }
  return [name, ...all.slice(at)];
}

function pattern(entry) {
  const [lead, options] = [[], []];
  for (const word of entry.split(/\s+/)) {
    (word.startsWith("-") && word !== "-m" ? options : lead).push(word);
  }
  return { lead, options, evenIfUsed: EVEN_IF_USED.includes(entry) };
}
const LISTED = RERUNNABLE.map(pattern);
const TESTS = RERUNNABLE_TESTS.map(pattern);

function matches(one, words, scripts) {
  const runs = scripts && words[1] === "run" && one.lead.length > 1 && one.lead[1] !== "run"
    && ["npm", "pnpm", "yarn", "bun"].includes(words[0]);
  const left = runs ? [words[0], ...words.slice(2)] : words;
  for (let at = 0; at < one.lead.length; at += 1) {
    if (at >= left.length) return false;
    const variant = scripts && at > 0 && at + 1 === one.lead.length
      && left[at].startsWith(`${one.lead[at]}:`);
    if (left[at] !== one.lead[at] && !variant) return false;
  }
  return one.options.every((option) => words.includes(option));
}

// ---- what a command line writes

const MAX_NAMES = 1000;
const MAX_SHELLS = 5;

class Sink {
  all = false;
  names = new Set();
  name(name) {
    if (this.names.size < MAX_NAMES) this.names.add(name);
    else if (!this.names.has(name)) this.all = true;
  }
  word(word) {
    const name = last(word.text);
    if (word.text.startsWith("/dev/") && !word.text.startsWith("/dev/shm/")) return;
    if (word.live && /[$*?[{<]/.test(name)) this.all = true;
    else if (name !== "" && !["-", ".", ".."].includes(name)) this.name(name);
  }
  words(words) {
    for (const word of words) this.word(word);
  }
  add(writes) {
    if (writes === "all") this.all = true;
    else for (const name of writes) this.name(name);
  }
  // "all", or the names.
  finish() {
    return this.all ? "all" : [...this.names].sort();
  }
}

const joined = (words) => texts(words).join(" ");

function scriptWrites(script, sink, depth) {
  sink.all ||= script.overflow;
  script.commands.forEach((one, at) => {
    for (const to of one.redirects) if (to.out) sink.word(to.target);
    simple(one.words, { command: one, before: script.commands[at - 1] }, sink, depth);
  });
}

function stdinText({ command: own, before }) {
  const here = (one) => (one.input.length > 0 ? one.input.join("\n") : null);
  const text = here(own);
  if (text !== null || !before || own.join !== "pipe") return text;
  const given = here(before);
  if (given !== null) return given;
  return ["echo", "printf"].includes(before.words[0]?.text) ? joined(before.words.slice(1)) : null;
}

function simple(all, stdin, sink, depth) {
  const [words, piped] = unwrap(all);
  if (words.length === 0) return;
  const args = words.slice(1);
  const name = last(words[0].text).replace(/\.exe$/, "");
  const [kind, value] = kindOf(name, args);
  if (piped && !["nothing", "shell", "code", "find"].includes(kind)) {
    sink.all = true;
    return;
  }
  if (kind === "all") sink.all = true;
  else if (kind === "fixed") for (const one of value) sink.name(one);
  else if (kind === "operands") sink.words(operands(args));
  else if (kind === "files") files(name, args, sink);
  else if (kind === "values") values(value, args, sink);
  else if (kind === "script") inPlace(name, args, sink);
  else if (kind === "fetch") fetch(name, args, sink);
  else if (kind === "patch") {
    let found = false;
    const stdinPatch = stdinText(stdin);
    for (const text of [...texts(args), ...(stdinPatch === null ? [] : [stdinPatch])]) {
      found = patchNames(text, sink) || found;
    }
    sink.all ||= !found;
  } else if (kind === "find") find(args, stdin, sink, depth);
  else if (kind === "shell") {
    let code = inline(name, args);
    if (code === null && name === "eval") code = joined(args);
    else if (code === null && operands(args).length === 0) code = stdinText(stdin);
    if (depth >= MAX_SHELLS) sink.all = true;
    else if (code !== null) scriptWrites(parse(code), sink, depth + 1);
  } else if (kind === "code") {
    let code = inline(name, args);
    const [first] = operands(args);
    if (code === null && (!first || first.text === "-")) code = stdinText(stdin);
    if (code !== null && mayWrite(code)) {
      namesIn(code, sink);
      for (const word of operands(args)) {
        if (fileLike(last(word.text)) && word.text.length < 400) sink.word(word);
      }
    }
  }
}

function files(name, args, sink) {
  const given = operands(args);
  const recursive = args.some(({ text }) => text === "--recursive"
    || (text.startsWith("-") && !text.startsWith("--") && /[rRa]/.test(text)));
  const taken = name === "rm" || name === "unlink" ? given.length : given.length - 1;
  given.forEach((word, at) => {
    const component = last(word.text);
    const folder = !fileLike(component) || (recursive && component.startsWith("."));
    if (at < taken && folder) sink.all = true;
    sink.word(word);
  });
}

function values(options, args, sink) {
  for (let at = 0; at < args.length; at += 1) {
    const word = args[at];
    const option = options.find((one) => word.text.startsWith(one));
    if (option === undefined) continue;
    const rest = word.text.slice(option.length);
    if (rest === "") {
      at += 1;
      if (args[at]) sink.word(args[at]);
    } else if (!rest.startsWith("-")) sink.word({ ...word, text: rest.replace(/^=+/, "") });
  }
}

function inPlace(name, args, sink) {
  let given = name !== "sed" && name !== "gsed" && !name.endsWith("awk");
  const found = [];
  for (let at = 0; at < args.length; at += 1) {
    const { text } = args[at];
    if (text.startsWith("--expression") || text.startsWith("--file")) given = true;
    else if (text.length > 1 && text.startsWith("-") && !text.startsWith("--")) {
      const inner = text.split("i")[0];
      if (text.endsWith("e") || inner.endsWith("e") || text === "-f") {
        given = true;
        if (/[ef]$/.test(text)) at += 1;
      } else if (text === "-i" && name.endsWith("awk")) at += 1;
    } else if (text !== "" && !text.startsWith("--")) found.push(args[at]);
  }
  sink.words(found.slice(given ? 0 : 1));
}

function fetch(name, args, sink) {
  const wget = name === "wget";
  const [letter, long] = wget ? ["O", "--output-document"] : ["o", "--output"];
  let [given, remote] = [false, wget];
  for (let at = 0; at < args.length; at += 1) {
    const word = args[at];
    const { text } = word;
    const short = text.startsWith("-") && !text.startsWith("--") ? text.slice(1) : null;
    let glued = text.startsWith(`${long}=`) ? text.slice(long.length + 1) : null;
    if (glued === null && short?.includes(letter)) glued = short.slice(short.indexOf(letter) + 1);
    if (text === long || glued === "") {
      given = true;
      at += 1;
      if (args[at]) sink.word(args[at]);
    } else if (glued !== null) {
      given = true;
      sink.word({ ...word, text: glued });
    } else remote ||= text === "--remote-name" || (short?.includes("O") ?? false);
  }
  if (remote && !given) {
    for (const word of args) {
      if (!word.text.includes("://")) continue;
      sink.word({ text: last(word.text.split(/[?#]/)[0]), quoted: true, live: word.live });
    }
  }
}

function find(args, stdin, sink, depth) {
  if (depth >= MAX_SHELLS) {
    sink.all = true;
    return;
  }
  for (let at = 0; at < args.length; at += 1) {
    const { text } = args[at];
    if (text === "-delete") sink.all = true;
    else if (["-fprint", "-fprintf", "-fls"].includes(text)) {
      if (args[at + 1]) sink.word(args[at + 1]);
    } else if (["-exec", "-execdir", "-ok", "-okdir"].includes(text)) {
      const behind = args.slice(at + 1);
      let end = behind.findIndex((word) => word.text === ";" || word.text === "+");
      if (end < 0) end = behind.length;
      simple(behind.slice(0, end), stdin, sink, depth + 1);
      at += end;
    }
  }
}

const NPM = ["package.json", "package-lock.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock"];
const CARGO = ["Cargo.toml", "Cargo.lock"];
const GO = ["go.mod", "go.sum"];
const PYTHON = ["pyproject.toml", "uv.lock", "poetry.lock"];
const among = (...names) => new Set(names);
const QUIET = among("echo", "printf", "rg", "grep", "cat", "ls", "cd", "head", "tail");
const OPERANDS = among("tee", "touch", "truncate", "sponge", "ln", "install", "ed", "ex");
const MOVERS = among("mv", "cp", "rm", "unlink");
const UNPACKERS = among("rsync", "scp", "rename", "unzip", "7z", "patch", "cpio");
const SHELLS = among("bash", "sh", "zsh", "dash", "ksh", "eval");
const CODES = among("python", "python3", "python2", "node", "deno", "bun", "perl", "ruby", "php");
const NPM_WRITES = among("install", "i", "add", "remove", "uninstall", "rm", "update", "up", "ci",
  "upgrade", "init", "pkg", "version", "dedupe");
const MAKERS = among("make", "just", "task", "nx", "turbo", "mage", "rake");
const FORMATTERS = among("rustfmt", "black", "isort", "stylua", "swiftformat", "autoflake",
  "pyupgrade", "leptosfmt", "taplo");
const GO_FORMATTERS = among("gofmt", "goimports", "gofumpt", "gci", "shfmt");
const IN_PLACE = among("autopep8", "clang-format", "yapf", "google-java-format");
const FMT_COMMANDS = among("dart", "mix", "terraform", "tofu", "zig", "deno", "dprint", "gleam", "forge");

// [kind, value]
function kindOf(name, args) {
  const has = (...options) => args.some((word) => options.includes(word.text));
  const any = (test) => [test ? "all" : "nothing"];
  const script = (test) => [test ? "script" : "nothing"];
  const first = subcommand(name, args)?.[0] ?? "";
  const dry = has("--check", "--diff", "--dry-run", "-n", "--list-different", "-check", "-c");
  if (QUIET.has(name)) return ["nothing"];
  if (OPERANDS.has(name)) return ["operands"];
  if (MOVERS.has(name)) return ["files"];
  if (UNPACKERS.has(name)) return any(!has("-l", "-p", "--list", "--dry-run", "-Z", "-t", "l"));
  if (name === "tar" || name === "bsdtar" || name === "gtar") return any(extracts(args));
  if (name === "dd") return ["values", ["of="]];
  if (name === "sort") return ["values", ["-o", "--output"]];
  if (name === "sed" || name === "gsed") {
    return script(clusters(args, "efl") || args.some((w) => w.text.startsWith("--in-place")));
  }
  if (name === "awk" || name === "gawk") return script(has("inplace"));
  if (name === "perl" && clusters(args, "eEMImx")) return ["script"];
  if (name === "ruby" && clusters(args, "eEIrx")) return ["script"];
  if (name === "curl" || name === "wget") return ["fetch"];
  if (name === "apply_patch" || name === "applypatch") return ["patch"];
  if (name === "find" || name === "gfind") return ["find"];
  if (SHELLS.has(name)) return ["shell"];
  if (CODES.has(name)) {
    const [operand] = operands(args);
    if (inline(name, args) !== null || !operand || operand.text === "-") return ["code"];
  }
  if (name === "git") return git(args);
  if (name === "gh") return any(first === "pr" && has("checkout"));
  if (name === "cargo") {
    if (first === "fmt") return any(!dry);
    if (first === "fix") return ["all"];
    return ["add", "remove", "rm", "update"].includes(first) ? ["fixed", CARGO] : any(has("--fix"));
  }
  if (name === "go") {
    if (["fmt", "generate", "fix"].includes(first)) return ["all"];
    return ["get", "mod", "work"].includes(first) ? ["fixed", GO] : ["nothing"];
  }
  if (["npm", "pnpm", "yarn", "bun"].includes(name)) {
    const writes = name === "bun" ? ["install", "i", "add", "remove", "update"].includes(first)
      : NPM_WRITES.has(first);
    return writes ? ["fixed", NPM] : any(formats(target(name, args)) || has("--fix", "--write"));
  }
  if (["uv", "poetry", "pdm"].includes(name)) {
    return ["add", "remove", "lock", "sync", "update", "init"].includes(first)
      ? ["fixed", PYTHON] : ["nothing"];
  }
  if (MAKERS.has(name)) return any(args.some((word) => formats(word.text)));
  if (FORMATTERS.has(name)) return any(!dry && !has("--check-only"));
  if (name === "ruff") return any(!dry && (first === "format" || has("--fix", "--unsafe-fixes")));
  if (GO_FORMATTERS.has(name)) return any(has("-w", "--write"));
  if (IN_PLACE.has(name)) return any(has("-i", "--in-place", "--replace"));
  if (name === "prettier") return any(has("--write", "-w"));
  if (FMT_COMMANDS.has(name)) {
    return any(!dry && (["format", "fmt"].includes(first) || has("--apply")));
  }
  if (name === "rubocop" || name === "standardrb") {
    return any(has("-a", "-A", "--autocorrect", "--autocorrect-all", "--auto-correct", "--fix"));
  }
  if (["pre-commit", "lefthook", "lint-staged"].includes(name)) {
    return any(first === "run" || name === "lint-staged");
  }
  if (name === "biome") return any(has("--write", "--apply", "--fix"));
  return any(has("--fix", "--write", "--in-place"));
}

function clusters(args, stops) {
  return args.some(({ text }) => {
    if (!text.startsWith("-") || text.startsWith("--") || text.length >= 40) return false;
    for (const letter of text.slice(1)) {
      if (stops.includes(letter)) return false;
      if (letter === "i") return true;
    }
    return false;
  });
}

function extracts(args) {
  return args.some(({ text }, at) => {
    if (text === "--extract" || text === "--get") return true;
    const dashed = text.startsWith("-") && !text.startsWith("--") ? text.slice(1) : null;
    const letters = dashed ?? (at === 0 ? text : null);
    return letters !== null && letters.length < 8 && letters.includes("x") && /^[A-Za-z]*$/.test(letters);
  });
}

const SUBCOMMAND_VALUED = {
  git: ["-C", "-c", "--git-dir", "--work-tree", "--namespace"],
  npm: ["--filter", "-F", "--prefix", "-C", "--dir", "--cwd", "-w", "--workspace"],
  cargo: ["--manifest-path", "--config", "-C", "-Z"],
  gh: ["-R", "--repo"],
  uv: ["--directory", "--project"],
  go: ["-C"],
};
for (const name of ["pnpm", "yarn", "bun"]) SUBCOMMAND_VALUED[name] = SUBCOMMAND_VALUED.npm;

function subcommand(name, args) {
  const valued = Object.hasOwn(SUBCOMMAND_VALUED, name) ? SUBCOMMAND_VALUED[name] : [];
  let at = skipOptions(args, 0, valued);
  if (name === "cargo" && args[at]?.text.startsWith("+")) at = skipOptions(args, at + 1, valued);
  return args[at] ? [args[at].text, at] : null;
}

function skipOptions(words, from, valued) {
  let at = from;
  while (at < words.length) {
    const { text } = words[at];
    if (!text.startsWith("-") || text.length < 2) break;
    at += valued.includes(text) ? 2 : 1;
    if (text === "--") break;
  }
  return at;
}

function target(name, args) {
  const found = subcommand(name, args);
  if (!found) return "";
  const [first, at] = found;
  if (!["run", "run-script", "workspace"].includes(first)) return first;
  return args[skipOptions(args, at + (first === "workspace" ? 2 : 1), [])]?.text ?? "";
}

const FORMATS = among("format", "fmt", "fix", "prettier", "codegen", "generate", "gen", "tidy");

function formats(name) {
  const parts = name.split(/[:\-_./]/);
  return parts.some((part) => FORMATS.has(part))
    && !parts.some((part) => ["check", "test", "verify"].includes(part));
}

const GIT_WRITES = among("restore", "reset", "am", "merge", "rebase", "pull", "revert",
  "cherry-pick", "clean", "mv", "rm", "submodule", "checkout-index", "read-tree");

function git(args) {
  const found = subcommand("git", args);
  if (!found) return ["nothing"];
  const [name, at] = found;
  const rest = args.slice(at + 1);
  let writes = GIT_WRITES.has(name);
  if (name === "checkout" || name === "switch") {
    const creates = rest.some((w) => ["-b", "-B", "-c", "-C", "--create", "--orphan"].includes(w.text));
    writes = !creates || operands(rest).length !== 1;
  } else if (name === "stash") writes = !["list", "show"].includes(rest[0]?.text);
  else if (name === "apply") writes = !rest.some((w) => ["--check", "--stat"].includes(w.text));
  return [writes ? "all" : "nothing"];
}

const RUNNERS = among("time", "nohup", "command", "builtin", "exec", "setsid", "stdbuf", "npx",
  "bunx", "pnpx", "uvx", "caffeinate", "dotenv");

function unwrap(words) {
  let at = 0;
  let piped = false;
  while (at < words.length) {
    const name = last(words[at].text);
    const next = at + 1;
    const second = words[next]?.text ?? "";
    if (/^[A-Za-z_][A-Za-z0-9_]*\+?=/.test(words[at].text)) at = next;
    else if (name === "env") at = skipOptions(words, next, ["-u", "-C"]);
    else if (name === "sudo" || name === "doas") at = skipOptions(words, next, ["-u", "-g"]);
    else if (name === "timeout" || name === "gtimeout") at = skipOptions(words, next, ["-s", "-k"]) + 1;
    else if (name === "nice" || name === "ionice") at = skipOptions(words, next, ["-n", "-c"]);
    else if (RUNNERS.has(name)) at = skipOptions(words, next, ["-p"]);
    else if (name === "xargs") {
      piped = true;
      at = skipOptions(words, next, ["-n", "-P", "-I", "-L", "-d", "-s", "-a", "-E", "-J"]);
    } else if (["uv", "poetry", "pipenv", "pdm", "hatch", "pipx", "rye"].includes(name) && second === "run") {
      at = skipOptions(words, next + 1, ["--with", "--directory", "--project"]);
    } else if (["bundle", "pnpm", "npm", "yarn", "mise"].includes(name) && ["exec", "dlx"].includes(second)) {
      at = skipOptions(words, next + 1, []);
    } else if (name === "bun" && second === "x") at = skipOptions(words, next + 1, []);
    else if (name.startsWith("python") && second === "-m") at = next + 1;
    else break;
  }
  return [words.slice(at), piped];
}

function operands(args) {
  const out = [];
  let options = true;
  for (const word of args) {
    if (options && word.text === "--") options = false;
    else if (!options || word.text.length < 2 || !word.text.startsWith("-")) out.push(word);
  }
  return out;
}

function inline(name, args) {
  if (name === "deno") {
    return args[0]?.text === "eval" ? args[args.length - 1].text : null;
  }
  const wanted = (option) => {
    if (["bash", "sh", "zsh", "dash", "ksh"].includes(name)) return option.endsWith("c");
    if (["python", "python3", "python2"].includes(name)) return option.endsWith("c") && option.length < 6;
    if (name === "node" || name === "bun") return ["-e", "--eval", "-p", "-pe", "--print"].includes(option);
    if (name === "php") return option === "-r";
    return !option.startsWith("--") && /[eE]$/.test(option);
  };
  const at = args.findIndex(({ text }) => !text.startsWith("-") || wanted(text));
  if (at < 0) return null;
  const { text } = args[at];
  if (!text.startsWith("-") || text.length < 2 || !wanted(text)) return null;
  return args[at + 1]?.text ?? null;
}

const WRITING = ["write", "'w", '"w', "'a'", '"a"', "'r+", '"r+', "'x'", "dump(", "rename", "unlink",
  "remove", "rmtree", "copy", "move(", "truncate", "save", "to_csv", "system(", "subprocess", "exec",
  "spawn", "Popen", "touch("];

const mayWrite = (code) => WRITING.some((mark) => code.includes(mark))
  || (code.includes("open(") && code.includes(">"));

function namesIn(code, sink) {
  let method = false;
  for (const [run] of code.matchAll(/[\p{Alphabetic}\p{N}_./@+~-]*[^\p{Alphabetic}\p{N}_./@+~-]|[\p{Alphabetic}\p{N}_./@+~-]+$/gu)) {
    const called = method && run.startsWith(".");
    method = /[)\]}]$/.test(run);
    const name = last(run.replace(/[^\p{Alphabetic}\p{N}_./@+~-]+$/u, "").replace(/\.+$/, ""));
    if (Buffer.byteLength(run) <= 400 && !called && fileLike(name)) sink.name(name);
  }
}

// ---- patches

const HEADS = ["Update File: ", "Add File: ", "Delete File: ", "Move to: "];

function patchNames(text, sink) {
  let found = false;
  for (let at = text.indexOf("*** "); at >= 0; at = text.indexOf("*** ", at + 4)) {
    const before = text.slice(Math.max(0, at - 2), at);
    const escaped = before === "\\n" || /["'`]$/.test(before);
    if (!escaped && before !== "" && !before.endsWith("\n")) continue;
    const head = HEADS.find((one) => text.startsWith(one, at + 4));
    if (head === undefined) continue;
    const rest = text.slice(at + 4 + head.length);
    const name = last(rest.split(escaped ? /[\n\\"'`]/ : "\n", 1)[0].trim());
    found = true;
    if (name === "" || name.includes("${")) sink.all = true;
    else sink.name(name);
  }
  return found;
}

function codeAction(script) {
  let [patch, others] = [script.includes("apply_patch"), false];
  for (const [, name] of script.matchAll(/tools\.([A-Za-z0-9_]*)/g)) {
    if (["", "exec_command", "shell", "shell_command", "local_shell"].includes(name)) continue;
    if (name === "apply_patch") patch = true;
    else others = true;
  }
  const sink = new Sink();
  if (patch) {
    const named = patchNames(script, sink);
    sink.all ||= !named;
  }
  return { ...NOTHING, kind: "code", writes: sink.finish(), mixed: others || patch };
}

// ---- calls

const KINDS = new Map();
for (const [kind, names] of Object.entries({
  read: "Read NotebookRead read read_file view view_image",
  edit: "Edit Write MultiEdit NotebookEdit edit write multiedit apply_patch str_replace_based_edit_tool str_replace_editor create_file write_file edit_file str_replace",
  shell: "Bash bash shell local_shell local_shell_call exec_command exec container.exec shell_command write_stdin BashOutput KillBash KillShell Monitor PowerShell",
  search: "Grep Glob LS grep glob ls list_dir grep_files",
  web: "WebFetch WebSearch web_search webfetch",
  agent: "Agent Task spawn_agent send_input wait_agent wait close_agent resume_agent SendMessage send_message followup_task interrupt_agent list_agents",
})) for (const name of names.split(" ")) KINDS.set(name, kind);

const shortName = (tool) => tool.slice(tool.lastIndexOf("__") < 0 ? 0 : tool.lastIndexOf("__") + 2);
const kindOfTool = (tool) => (tool.startsWith("mcp__") ? "mcp" : KINDS.get(shortName(tool)) ?? "other");

export const isEditTool = (tool) =>
  !["shell", "code", "agent", "mcp"].includes(kindOfTool(tool)) && tool !== "exec";

const NOTHING = { kind: "other", reads: [], writes: [], rerunnable: null, mixed: false };

function collect(value, key, depth, leaves) {
  if (typeof value === "string") leaves.push({ key, depth, string: true, text: value });
  else if (typeof value === "number") leaves.push({ key, depth, string: false, text: String(value) });
  else if (Array.isArray(value)) for (const one of value) collect(one, key, depth + 1, leaves);
  else if (value && typeof value === "object") {
    for (const [name, one] of Object.entries(value)) collect(one, name, depth + 1, leaves);
  }
}

const leafOf = (leaves, key) =>
  leaves.find((leaf) => leaf.string && leaf.depth <= 1 && leaf.key === key)?.text;

function firstOf(leaves, keys) {
  for (const key of keys) {
    const text = leafOf(leaves, key);
    if (text !== undefined) return text;
  }
  return undefined;
}

function shellText(leaves) {
  const named = leaves.filter((leaf) => leaf.string && (leaf.key === "command" || leaf.key === "cmd"));
  if (named.length === 0) return undefined;
  if (named[0].depth <= 1) return named[0].text;
  const argv = named.filter((leaf) => leaf.depth === named[0].depth).map((leaf) => leaf.text);
  if (argv.length >= 3 && ["bash", "sh", "zsh", "dash", "ksh"].includes(last(argv[0]))
    && argv[1].startsWith("-") && argv[1].endsWith("c")) return argv[2];
  return argv.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
}

function scriptAction(script, cwd) {
  const sink = new Sink();
  scriptWrites(script, sink, 0);
  const out = { ...NOTHING, kind: "shell", writes: sink.finish() };
  const line = out.writes.length === 0 ? lineOf(script) : null;
  if (!line) return out;
  const shown = readOf(line, cwd);
  out.reads = shown === null || shown === undefined ? [] : [shown];
  if (shortenedAtMost(line)) {
    const words = canonical(line.main.words);
    const listed = (list, needsPass) => {
      const found = list.filter((one) => matches(one, words, needsPass));
      return found.length === 0 ? null
        : { needsPass, evenIfUsed: found.some((one) => one.evenIfUsed) };
    };
    out.rerunnable = listed(LISTED, false) ?? listed(TESTS, true);
  }
  return out;
}

function outerAction(host, tool, input, cwd) {
  const leaves = [];
  collect(input, "", 0, leaves);
  const kind = kindOfTool(tool);
  const short = shortName(tool);
  const path = () =>
    firstOf(leaves, ["file_path", "notebook_path", "path", "filePath", "target_file"]) || undefined;
  const out = { ...NOTHING, kind };
  const shows = () => {
    const file = path();
    return file === undefined ? [] : [normalise(file, cwd)];
  };
  if (kind === "agent" && host === "codex" && short === "wait" && leafOf(leaves, "cell_id") !== undefined) {
    return { ...NOTHING, kind: "code", mixed: true };
  }
  if (kind === "read") out.reads = shows();
  else if (kind === "edit" && short === "apply_patch") {
    const sink = new Sink();
    let found = false;
    for (const leaf of leaves) found = patchNames(leaf.text, sink) || found;
    sink.all ||= !found;
    out.writes = sink.finish();
  } else if (kind === "edit" && short.startsWith("str_replace") && leafOf(leaves, "command") === "view") {
    out.kind = "read";
    out.reads = shows();
  } else if (kind === "edit") {
    const file = path();
    out.writes = file === undefined ? "all" : [last(file)];
  } else if (kind === "mcp" && kindOfTool(short) === "edit") {
    const file = path();
    if (file !== undefined) out.writes = [last(file)];
  } else if (kind === "shell" && short === "write_stdin") {
    out.writes = scriptAction(parse(leafOf(leaves, "chars") ?? ""), null).writes;
  } else if (kind === "shell") {
    const script = leaves.find((leaf) => leaf.depth === 0);
    if (script && host === "codex" && short === "exec") return codeAction(script.text);
    const dir = firstOf(leaves, ["workdir", "working_directory", "cwd"]);
    const text = shellText(leaves);
    if (text !== undefined) {
      const at = dir === undefined ? undefined : normalise(dir, cwd);
      return scriptAction(parse(text), at ?? cwd);
    }
  } else if (kind === "search" && short.toLowerCase() === "ls") {
    out.rerunnable = { needsPass: false, evenIfUsed: true };
  }
  return out;
}

/** What a call does, all that ran in it included. */
export function actionOf(host, tool, input, cwd, ran) {
  const outer = outerAction(host, tool, input, cwd);
  if (outer.kind !== "code") return outer;
  const sink = new Sink();
  sink.add(outer.writes);
  for (const one of ran.loose) {
    for (const path of one.writes) sink.name(last(path));
    sink.add(commandAction(one).writes);
  }
  let single = null;
  let count = 0;
  const reads = [];
  for (const one of ran.commands) {
    for (const path of one.writes) sink.name(last(path));
    if (one.command === "") continue;
    single = commandAction(one);
    count += 1;
    sink.add(single.writes);
    for (const path of single.reads) if (!reads.includes(path)) reads.push(path);
  }
  const beside = outer.mixed || outer.writes.length > 0 || ran.loose.length > 0;
  if (count !== 1 || beside) single = null;
  return { ...outer, reads, rerunnable: single?.rerunnable ?? outer.rerunnable, writes: sink.finish() };
}

function commandAction(one) {
  const script = parse(one.command);
  const action = scriptAction(script, one.cwd);
  if (script.commands.length === 1 && one.reads.length === 1 && action.reads.length === 0
    && action.writes.length === 0 && script.commands[0].redirects.length === 0 && !script.compound) {
    action.reads = [normalise(one.reads[0], one.cwd)];
  }
  return action;
}

// ---- failures

const MARKS = ["panicked at", "Traceback (most recent call last)", "error[E", "npm ERR!", "npm error",
  "ELIFECYCLE", "command not found", "No such file or directory", "core dumped", "Segmentation fault",
  "could not compile", "test run failed", "Build failed", "FAILURES"];
const STARTS = /^(?:✗|✘|✕|✖|×|❌|not ok|error:|Error:|ERROR|E {3}|FATAL|fatal:|make: \*\*\*)/;
const PIECE = /[\p{Alphabetic}\p{N}_]*[^\p{Alphabetic}\p{N}_]|[\p{Alphabetic}\p{N}_]+$/gu;
const number = (word) => (/^[0-9]+$/.test(word) ? /[1-9]/.test(word) : null);

export function showsFailure(text) {
  return MARKS.some((mark) => text.includes(mark))
    || text.split("\n").some((line) => STARTS.test(line.trimStart()) || tells(line));
}

function tells(line) {
  let [before, earlier, near] = ["", "", false];
  for (const [piece] of line.replace(/\r$/, "").matchAll(PIECE)) {
    const word = piece.replace(/[^\p{Alphabetic}\p{N}_]+$/u, "");
    const gap = /[:= ]$/.test(piece);
    if (word === "") {
      near &&= gap;
      continue;
    }
    let counted = true;
    if (/^(?:FAIL|FAILED|FAILURE|FAILING)$/.test(word)) {
      if (number(before) === null) return true;
    } else counted = /^(?:failed|failing|failures|failure|fail|errors|error|errored)$/i.test(word);
    const count = before.startsWith("test") || before.startsWith("suite") ? earlier : before;
    if (counted && number(count) === true) return true;
    if (number(word) === true && near
      && /^(?:failed|failures|failure|fail|errors|errored)$/i.test(before)) return true;
    [earlier, before, near] = [before, word, gap];
  }
  return false;
}
