// The full rescan of `tests/src/rescan`, in Node.js: the peer of the ingest benchmark.
//
//   node rescan.mjs FILE… [--history whole|context] [--profile reference|standard] [--dump]
//
// JSON.parse per line, one RegExp alternation for tokens, Map and Set of strings.
// Prints the number of results, or with --dump every decision as a line of JSON.

import { readFileSync } from "node:fs";
import { actionOf, isEditTool, showsFailure } from "./tools.mjs";

const options = { history: "context", profile: "standard", dump: false };
const files = [];
const given = process.argv.slice(2);
for (let at = 0; at < given.length; at += 1) {
  if (given[at] === "--dump") options.dump = true;
  else if (given[at].startsWith("--")) {
    options[given[at].slice(2)] = given[at + 1];
    at += 1;
  } else files.push(given[at]);
}
const RECENT_RESULTS = 10;
const PIN_LAST = 6;
const GENERIC_ABOVE = 10;
const RERUNNABLE_CHARS = 200;
const MAX_LINE = 8 * 1024 * 1024;

// ---- texts

const HIGH = /[\ud800-\udbff]/;
const charCount = (text) => {
  if (!HIGH.test(text)) return text.length;
  let count = text.length;
  for (let at = 0; at < text.length; at += 1) if ((text.charCodeAt(at) & 0xfc00) === 0xd800) count -= 1;
  return count;
};
const head = (text, chars) => {
  const units = text.slice(0, 2 * chars);
  return HIGH.test(units) ? [...units].slice(0, chars).join("") : text.slice(0, chars);
};

function parseLine(line) {
  if (line.length > MAX_LINE) return null;
  const value = parseText(line);
  return value && typeof value === "object" && !Array.isArray(value) ? value : null;
}

function parseText(text) {
  let fixed = text;
  if (text.includes("\\ud") || text.includes("\\uD")) {
    fixed = text.replace(
      /\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\[\s\S]/g,
      (escape) => (/^\\u[dD]/.test(escape) && escape.length === 6 ? "\\ufffd" : escape),
    );
  }
  try {
    return JSON.parse(fixed);
  } catch {
    return undefined;
  }
}

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const get = (value, key) => (isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined);
const string = (value, key) => {
  const found = get(value, key);
  return typeof found === "string" && found !== "" ? found : null;
};
const text = (value, key) => {
  const found = get(value, key);
  return typeof found === "string" ? found : undefined;
};
const flag = (value, key) => get(value, key) === true;

function leaves(input, out = []) {
  if (typeof input === "string") out.push(input);
  else if (typeof input === "number") out.push(String(input));
  else if (Array.isArray(input)) for (const one of input) leaves(one, out);
  else if (isObject(input)) for (const one of Object.values(input)) leaves(one, out);
  return out;
}

// ---- readers

const row = (role, items) => ({
  kind: "row", uuid: null, parent: null, messageId: null, role, sidechain: false, summary: false,
  meta: false, thought: false, cwd: null, items,
});

const CODEX_KINDS = new Set(["session_meta", "response_item", "event_msg", "turn_context", "compacted"]);
const CLAUDE_KINDS = new Set(["user", "assistant", "summary", "system", "attachment", "progress",
  "queue-operation", "file-history-snapshot", "permission-mode"]);

function sniff(value) {
  if (CODEX_KINDS.has(value.type)) return "codex";
  return CLAUDE_KINDS.has(value.type) || get(value, "parentUuid") !== undefined ? "claude" : null;
}

function claudeRecord(value) {
  let role = "link";
  if (value.type === "user") role = "user";
  else if (value.type === "assistant" && !flag(value, "isApiErrorMessage")) role = "assistant";
  const uuid = string(value, "uuid");
  const boundary = value.type === "system" && value.subtype === "compact_boundary";
  if (role === "link" && uuid === null && !boundary) return null;
  const message = get(value, "message");
  let items = [];
  if (role !== "link" && typeof message === "string") items = textItem(message);
  else if (role !== "link" && message !== undefined) items = claudeContent(get(message, "content"));
  const made = row(role, items);
  made.uuid = uuid;
  made.parent = string(value, "parentUuid");
  made.messageId = role === "assistant" && message !== undefined ? string(message, "id") : null;
  made.sidechain = flag(value, "isSidechain");
  made.summary = flag(value, "isCompactSummary");
  made.meta = flag(value, "isMeta");
  made.cwd = string(value, "cwd");
  if (!boundary) return made;
  const preserved = get(get(get(value, "compactMetadata"), "preservedMessages"), "uuids");
  return {
    kind: "boundary", row: made,
    preserved: Array.isArray(preserved) ? preserved.filter((one) => typeof one === "string") : [],
  };
}

const textItem = (said) => (said === "" ? [] : [{ kind: "text", text: said }]);

function claudeContent(content) {
  if (typeof content === "string") return textItem(content);
  return Array.isArray(content) ? content.flatMap(claudeBlock) : [];
}

function claudeBlock(block) {
  if (typeof block === "string") return textItem(block);
  const type = text(block, "type");
  if (type === "text") return textItem(text(block, "text") ?? "");
  if (type === "tool_use") {
    const id = string(block, "id");
    if (id === null) return [];
    return [{ kind: "call", id, tool: string(block, "name") ?? "", input: get(block, "input") ?? null }];
  }
  if (type === "tool_result") {
    const id = string(block, "tool_use_id");
    if (id === null) return [];
    const [said, opaque] = claudeResult(get(block, "content"));
    return [{ kind: "result", id, text: said, body: said, pieces: [said], isError: flag(block, "is_error"),
      opaque, running: null, ran: nothingRan() }];
  }
  return type === undefined || type === "thinking" || type === "redacted_thinking" ? [] : [{ kind: "opaque" }];
}

function claudeResult(content) {
  if (typeof content === "string") return [content, false];
  if (!Array.isArray(content)) return ["", false];
  const texts = [];
  let opaque = false;
  for (const part of content) {
    const said = typeof part === "string" ? part : text(part, "text");
    if (said === undefined) opaque = true;
    else texts.push(said);
  }
  return [texts.join("\n"), opaque];
}

function codexRecords(values) {
  let cwd = null;
  const records = [];
  for (const value of values) {
    const payload = get(value, "payload");
    if (!isObject(payload)) continue;
    let record = null;
    if (value.type === "session_meta" || value.type === "turn_context") cwd = string(payload, "cwd") ?? cwd;
    else if (value.type === "response_item") record = responseItem(payload, cwd);
    else if (value.type === "compacted") record = compacted(payload, cwd);
    else if (value.type === "event_msg") record = codexEvent(payload);
    if (record) records.push(record);
  }
  tie(records);
  return records;
}

// What ran inside which call: told by the place of the host's line.
const nothingRan = () => ({ commands: [], loose: [], failed: false, unsure: false });
const copyRan = (ran) => ({ ...ran, commands: [...ran.commands], loose: [...ran.loose] });

function tie(records) {
  const waiting = new Map();
  let scripts = [];
  let cells = [];
  const done = new Map();
  const called = ({ id, tool, input }, copy) => {
    const name = tool.slice(tool.lastIndexOf("__") < 0 ? 0 : tool.lastIndexOf("__") + 2);
    const ofServer = tool.startsWith("mcp__");
    const cell = name === "wait" && !ofServer ? text(input, "cell_id") ?? null : null;
    const isScript = (name === "exec" && !ofServer && typeof input === "string") || cell !== null;
    let ran = copyRan(done.get(id) ?? nothingRan());
    if (isScript && !copy) {
      const own = cells.find((one) => one.id === cell);
      if (own) [ran, own.ran] = [own.ran, nothingRan()];
      scripts.push(id);
    }
    waiting.set(id, { isScript, cell, ran });
  };
  const answered = ({ id, running }, copy) => {
    scripts = scripts.filter((script) => script !== id);
    const call = waiting.get(id);
    if (!call) return nothingRan();
    waiting.delete(id);
    if (call.isScript && !copy) {
      if (running === null) cells = cells.filter((one) => one.id !== call.cell);
      else if (!cells.some((one) => one.id === running)) cells.push({ id: running, ran: nothingRan() });
    }
    const { commands, loose, failed, unsure } = call.ran;
    if (commands.length > 0 || loose.length > 0 || failed || unsure) done.set(id, copyRan(call.ran));
    return { ...call.ran, unsure: unsure || (call.isScript && running !== null) };
  };
  const happened = (inner) => {
    if (!inner.id.startsWith("exec-")) {
      const call = waiting.get(inner.id);
      if (call) call.ran.failed ||= inner.failed;
      return;
    }
    const script = waiting.get(scripts[0]);
    const owners = cells.filter((one) => one.id !== script?.cell).map((one) => one.ran);
    if (script) owners.unshift(script.ran);
    for (const owner of owners) owner.failed ||= inner.failed;
    if (owners.length === 1) owners[0].commands.push(inner);
    else {
      for (const owner of owners) owner.unsure ||= inner.reads.length > 0;
      if (script) owners[0].loose.push(inner);
    }
  };
  const take = (one, copy) => {
    if (!copy && isPrompt(one)) scripts = [];
    for (const item of one.items) {
      if (item.kind === "call") called(item, copy);
      else if (item.kind === "inner") happened(item.inner);
      else if (item.kind === "result") {
        item.ran = answered(item, copy);
        item.isError ||= item.ran.failed;
      }
    }
  };
  for (const record of records) {
    if (record.kind === "row") take(record, false);
    else if (record.kind === "compacted") for (const one of record.rows) take(one, true);
  }
}

function codexEvent(payload) {
  if (payload.type === "thread_rolled_back") {
    const turns = payload.num_turns;
    return Number.isInteger(turns) && turns >= 0 ? { kind: "rolledBack", turns } : null;
  }
  let inner = null;
  if (payload.type === "exec_command_end") inner = innerCommand(payload);
  else if (payload.type === "mcp_tool_call_end") inner = innerOther(payload);
  else if (payload.type === "item_completed") {
    const item = get(payload, "item");
    const type = text(item, "type");
    if (type === "CommandExecution") inner = innerCommand(item);
    else if (type === "FileChange" || type === "McpToolCall") inner = innerOther(item);
  }
  return inner === null ? null : row("link", [{ kind: "inner", inner }]);
}

const innerId = (item) => string(item, "call_id") ?? string(item, "id") ?? "";
const localPath = (path) => path?.replace(/^(?:file:\/\/)+/, "") ?? null;

function innerCommand(item) {
  let command = "";
  if (typeof item.command === "string") command = item.command;
  else if (Array.isArray(item.command)) {
    const words = item.command.filter((word) => typeof word === "string");
    command = words.length === 3 && (words[1] === "-lc" || words[1] === "-c") ? words[2] : words.join(" ");
  }
  const parsed = Array.isArray(item.parsed_cmd) ? item.parsed_cmd : [];
  const reads = parsed.filter((part) => text(part, "type") === "read")
    .map((part) => string(part, "path")).filter((path) => path !== null);
  const code = get(item, "exit_code") ?? null;
  const failed = (code !== null && code !== 0) || item.status === "failed";
  return { id: innerId(item), command, cwd: localPath(string(item, "cwd")), reads, writes: [], failed };
}

// A patch, or a tool of a server.
function innerOther(item) {
  const writes = [];
  const changes = get(item, "changes");
  for (const [path, change] of Object.entries(isObject(changes) ? changes : {})) {
    writes.push(localPath(path));
    const moved = string(change, "move_path");
    if (moved !== null) writes.push(localPath(moved));
  }
  const result = get(item, "result");
  const failed = item.status === "failed" || item.status === "declined"
    || get(result, "Err") !== undefined || flag(get(result, "Ok") ?? result, "isError");
  return { id: innerId(item), command: "", cwd: null, reads: [], writes, failed };
}

function responseItem(payload, cwd) {
  const type = text(payload, "type");
  let made;
  if (type === "message") {
    const role = text(payload, "role");
    if (role === undefined) return null;
    made = row(role === "assistant" ? "assistant" : "user", codexContent(payload.content));
    made.meta = role === "developer" || role === "system";
  } else if (type === "agent_message") {
    made = row("user", codexContent(payload.content));
    made.meta = true;
  } else if (type === "reasoning") {
    made = row("assistant", []);
    made.thought = true;
  } else if (type === "web_search_call" || type === "tool_search_call" || type === "image_generation_call") {
    made = row("assistant", [{ kind: "opaque" }]);
  } else if (type === "function_call") {
    const given = payload.arguments ?? null;
    const inner = typeof given === "string" ? parseText(given) : undefined;
    made = codexCall(payload, inner === undefined ? given : inner);
  } else if (type === "custom_tool_call") made = codexCall(payload, payload.input ?? null);
  else if (type === "local_shell_call") made = codexCall(payload, payload.action ?? null);
  else if (type === "function_call_output" || type === "custom_tool_call_output") {
    const id = string(payload, "call_id");
    if (id === null) return null;
    made = row("user", [codexResult(id, payload.output)]);
  } else if (type === "tool_search_output") {
    made = row("user", [{ kind: "opaque" }]);
    made.meta = true;
  } else if (type === "compaction" || type === "compaction_summary" || type === "context_compaction") {
    made = row("user", [{ kind: "opaque" }]);
    made.summary = true;
  }
  if (!made) return null;
  made.cwd = cwd;
  return made;
}

function codexCall(payload, input) {
  const id = string(payload, "call_id");
  if (id === null) return null;
  const name = string(payload, "name") ?? "local_shell";
  const space = string(payload, "namespace");
  return row("assistant", [{ kind: "call", id, tool: space === null ? name : `${space}__${name}`, input }]);
}

function codexContent(content) {
  if (typeof content === "string") return textItem(content);
  if (!Array.isArray(content)) return [];
  return content.flatMap((part) => {
    const said = text(part, "text");
    return said === undefined ? [{ kind: "opaque" }] : textItem(said);
  });
}

const HEADER = /^(?:Command: |Chunk ID: |Wall time|Exit code: |Process (?:exited|running) with |Original token count: |Total output lines: |Script (?:completed|failed|running))/;
const OUTPUT_LINE = /(?:^|\n)Output:[ \t\r]*(?:\n|$)/;
const EXIT_CODE = /(?:^|\n)(?:Process exited with code|Exit code:) *(-?[0-9]+)/g;
const HOST_FAILURE = /^(?:aborted$|(?:Wall time[^\n]*\n)?aborted by user|unsupported (?:custom tool )?call:|(?:exec_command|write_stdin|collab spawn|apply_patch verification) failed|failed to parse function arguments|failed in sandbox|command timed out|exec expects raw JavaScript|patch rejected|unable to locate image)/;
const WARNING = /^(?:Warning: truncated output \([^\n]*(?:\n|$)(?:Total output lines: [^\n]*(?:\n|$))?|Total output lines: [^\n]*(?:\n|$))(?:\r*(?:\n|$))?/;
const RUNNING = /^(?:Script running with cell ID|Process running with session ID) ([^\n\r]*[^\s])[^\S\n]*$/m;
const CUT_ANSWER = /^(\{"(?:chunk_id|wall_time_seconds)":[\s\S]*?)"output":"([\s\S]*?)(?:"\})?$/;

function bodyStart(said) {
  if (!HEADER.test(said)) return 0;
  const found = OUTPUT_LINE.exec(said);
  return found ? found.index + found[0].length : 0;
}

function codexResult(id, output) {
  let [isError, opaque] = [false, false];
  let parts = [];
  let value = output ?? null;
  if (typeof value === "string" && value.startsWith("{")) {
    const inner = parseText(value);
    if (typeof get(inner, "output") === "string" && get(inner, "metadata") !== undefined) {
      const code = get(inner.metadata, "exit_code");
      isError ||= Number.isInteger(code) && code !== 0;
      value = inner.output;
    }
  }
  if (isObject(value)) {
    isError ||= value.success === false;
    value = get(value, "content") ?? [value];
  }
  if (typeof value === "string") parts = [value];
  else if (Array.isArray(value)) {
    for (const part of value) {
      const said = typeof part === "string" ? part : text(part, "text");
      if (said === undefined) opaque = true;
      else parts.push(said);
    }
  }
  const said = parts.join("\n");
  const start = bodyStart(said);
  const lead = start > 0 ? said.slice(0, start) : said.split("\n", 1)[0];
  if (HEADER.test(lead)) isError ||= [...lead.matchAll(EXIT_CODE)].some((code) => code[1] !== "0");
  isError ||= HOST_FAILURE.test(said) || parts.some((part) => part.startsWith("Script error:"));
  let pieces = [said];
  if (start > 0 && said.startsWith("Script ")) {
    isError ||= said.startsWith("Script failed") || said.startsWith("Script error:");
    const shown = scriptShows(parts);
    pieces = shown.pieces;
    isError ||= shown.failed;
  } else if (start > 0) {
    isError ||= said.startsWith("Script error:", start);
    const [body, failed] = behindHeader(said.slice(start));
    pieces = [body];
    isError ||= failed;
  }
  const running = RUNNING.exec(said.slice(0, start))?.[1].trim() ?? null;
  return {
    kind: "result", id, text: said, body: pieces.join("\n"), pieces, isError, opaque, running, ran: nothingRan(),
  };
}

const withoutWarning = (body) => body.replace(WARNING, "");

// A body without a second header of the host, and whether that tells of a failure.
function behindHeader(body) {
  const start = body.startsWith("Exit code:") ? bodyStart(body) : 0;
  const failed = [...body.slice(0, start).matchAll(EXIT_CODE)].some((code) => code[1] !== "0");
  return [withoutWarning(body.slice(start)), failed];
}

// Code mode: behind the header part, what the other parts show, JSON of the host decoded.
function scriptShows(parts) {
  const pieces = [];
  let failed = false;
  parts.forEach((whole, number) => {
    const behind = number === 0 ? whole.slice(bodyStart(whole)) : whole;
    if (number === 0 && behind === "") return;
    const part = withoutWarning(behind);
    const found = { texts: [], any: false, failed: false };
    const trimmed = part.trim();
    const json = (trimmed.startsWith("{") && trimmed.endsWith("}"))
      || (trimmed.startsWith("[") && trimmed.endsWith("]"));
    const value = json ? parseText(trimmed) : undefined;
    const cut = value === undefined ? CUT_ANSWER.exec(trimmed) : null;
    if (value !== undefined) textsOf(value, 0, found);
    else if (cut) {
      const code = cut[1].split('"exit_code":')[1];
      found.failed = code !== undefined && code.split(/[,}]/)[0].trim() !== "0";
      const [body, innerFailed] = behindHeader(unescaped(cut[2]));
      found.failed ||= innerFailed;
      found.any = true;
      found.texts.push(body);
    }
    failed ||= found.failed;
    if (found.any) pieces.push(...found.texts);
    else pieces.push(part);
  });
  return { pieces, failed };
}

const unescaped = (inner) => inner.replace(/\\(?:u([0-9a-fA-F]{4})|([\s\S]?))/g, (_, unit, one) => {
  if (unit !== undefined) return String.fromCharCode(Number.parseInt(unit, 16));
  const known = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f", '"': '"', "\\": "\\", "/": "/" };
  return Object.hasOwn(known, one) ? known[one] : `\ufffd${one}`;
});

function textsOf(value, depth, found) {
  if (typeof value === "string") found.texts.push(value);
  else if (depth > 8) found.texts.push(JSON.stringify(value));
  else if (Array.isArray(value)) for (const one of value) textsOf(one, depth + 1, found);
  else if (isObject(value)) {
    const ofCommand = ["chunk_id", "wall_time_seconds", "exit_code", "session_id"]
      .some((key) => Object.hasOwn(value, key));
    const output = text(value, "output");
    const content = get(value, "content");
    if (output !== undefined && ofCommand) {
      const code = get(value, "exit_code") ?? null;
      const [body, innerFailed] = behindHeader(output);
      found.failed ||= innerFailed || (code !== null && code !== 0);
      found.any = true;
      found.texts.push(body);
    } else if (Array.isArray(content) && get(value, "isError") !== undefined) {
      found.failed ||= flag(value, "isError");
      found.any = true;
      for (const part of content) if (text(part, "text") !== undefined) found.texts.push(part.text);
    } else {
      for (const [key, one] of Object.entries(value)) if (key !== "status") textsOf(one, depth + 1, found);
    }
  }
}

function compacted(payload, cwd) {
  if (typeof payload.message !== "string") return null;
  const number = payload.window_number ?? null;
  if (number !== null && !(Number.isInteger(number) && number >= 0)) return null;
  const items = payload.replacement_history ?? null;
  if (items === null) {
    if (payload.message === "") return { kind: "compacted", rows: [] };
    const made = row("user", [{ kind: "text", text: payload.message }]);
    made.summary = true;
    made.meta = true;
    return { kind: "compacted", rows: [made] };
  }
  if (!Array.isArray(items)) return null;
  const metadata = payload.replacement_history_metadata ?? null;
  if (metadata !== null && !(Array.isArray(metadata) && metadata.length === items.length)) return null;
  if (!items.every(wellFormed)) return null;
  const rows = items.map((item) => responseItem(item, cwd)).filter((one) => one);
  // The summary stands among them as if the person had said it.
  for (const one of rows) {
    if (one.role === "user" && payload.message !== "" && one.items.length === 1
      && one.items[0].text === payload.message && one.items[0].kind === "text") one.meta = true;
  }
  return { kind: "compacted", rows };
}

function wellFormed(item) {
  const type = text(item, "type");
  if (type === undefined) return false;
  const has = (...keys) => keys.every((key) => text(item, key) !== undefined);
  if (type === "message") return has("role") && Array.isArray(item.content) && item.content.every(wellFormedPart);
  if (type === "function_call") return has("name", "arguments", "call_id");
  if (type === "custom_tool_call") return has("name", "input", "call_id");
  if (type === "function_call_output" || type === "custom_tool_call_output") {
    return has("call_id") && (typeof item.output === "string"
      || (Array.isArray(item.output) && item.output.every(wellFormedPart)));
  }
  return true;
}

function wellFormedPart(part) {
  const type = text(part, "type");
  if (type === "input_text" || type === "output_text") return text(part, "text") !== undefined;
  return type === "input_image" || type === "encrypted_content";
}

// ---- which rows count

const rowOf = (record) => (record.kind === "row" ? record : record.kind === "boundary" ? record.row : null);

function claudeWhole(records) {
  const seen = new Set();
  const sidechain = rowOf(records[0] ?? {})?.sidechain ?? false;
  return records.filter((record) => {
    if (record.kind !== "row" || record.sidechain !== sidechain) return false;
    if (record.uuid === null) return true;
    const fresh = !seen.has(record.uuid);
    seen.add(record.uuid);
    return fresh;
  });
}

const isPrompt = (one) => {
  const first = one.items.find((item) => item.kind === "text");
  return one.role === "user" && !one.meta && first !== undefined && !first.text.startsWith("<");
};

function codexContext(records) {
  let context = [];
  for (const record of records) {
    if (record.kind === "row") context.push(record);
    else if (record.kind === "compacted") context = [...record.rows];
    else if (record.turns > 0) {
      const prompts = [...context.keys()].filter((at) => isPrompt(context[at]));
      context.length = record.turns <= prompts.length ? prompts[prompts.length - record.turns] : 0;
    }
  }
  return context;
}

function claudeContext(all) {
  const subagent = rowOf(all[0] ?? {})?.sidechain ?? false;
  const records = all.filter((record) => rowOf(record).sidechain === subagent);
  const at = records.findLastIndex((record) => record.kind === "boundary");
  const context = activeRows(records.slice(Math.max(at, 0)));
  if (at < 0) return context;
  const byUuid = new Map();
  for (const record of records.slice(0, at)) {
    const one = rowOf(record);
    if (one.uuid !== null) byUuid.set(one.uuid, one);
  }
  const kept = records[at].preserved.map((uuid) => byUuid.get(uuid)).filter((one) => one);
  const lead = context.findIndex((one) => one.items.length > 0);
  context.splice(lead < 0 ? context.length : lead + (context[lead].summary ? 1 : 0), 0, ...kept);
  return context;
}

function activeRows(epoch) {
  const rows = [];
  const parents = [];
  const places = new Map();
  let newest;
  for (const record of epoch) {
    const one = rowOf(record);
    let parent;
    if (one.uuid !== null) {
      if (places.has(one.uuid)) continue;
      if (one.parent !== null && record.kind === "row") parent = places.get(one.parent) ?? newest;
      places.set(one.uuid, rows.length);
      newest = rows.length;
    }
    rows.push(one);
    parents.push(parent);
  }
  const path = new Set();
  for (let at = newest; at !== undefined; at = parents[at]) path.add(at);
  const messages = new Set();
  for (const at of path) {
    if (rows[at].role === "assistant" && rows[at].messageId !== null) messages.add(rows[at].messageId);
  }
  const isIn = rows.map((one, at) => path.has(at) || one.uuid === null
    || (one.role === "assistant" && one.messageId !== null && messages.has(one.messageId)));
  // A row of results is in with the calls that stand before it.
  const calls = new Set();
  const answers = (one) => one.items.length > 0
    && one.items.every((item) => item.kind === "result" && calls.has(item.id));
  const first = epoch[0]?.kind === "boundary" ? 1 : 0;
  return rows.filter((one, at) => {
    if (!isIn[at] && !answers(one)) return false;
    for (const item of one.items) if (item.kind === "call") calls.add(item.id);
    return at >= first;
  });
}

// ---- messages, calls, results, texts

function historyOf(host, rows) {
  const history = { host, messages: 0, calls: [], results: [], texts: [] };
  let newest = null;
  const byId = new Map();
  const open = (role) => {
    newest = role;
    history.messages += 1;
    return history.messages - 1;
  };
  const join = (role) => (newest === role ? history.messages - 1 : open(role));
  const number = (one) => {
    if (one.role === "link" || (one.items.length === 0 && !(host === "codex" && one.thought))) return 0;
    if (host === "codex" || one.role === "user") return join(one.role);
    if (one.messageId === null) return open("assistant");
    if (!byId.has(one.messageId)) byId.set(one.messageId, open("assistant"));
    return byId.get(one.messageId);
  };
  const callOf = new Map();
  const answered = new Set();
  let position = 0;
  for (const one of rows) {
    const message = number(one);
    for (const item of one.items) {
      position += 1;
      if (item.kind === "text") {
        if (one.role === "assistant") history.texts.push({ text: item.text, message, position });
      } else if (item.kind === "call") {
        if (callOf.has(item.id)) continue;
        callOf.set(item.id, history.calls.length);
        history.calls.push({
          id: item.id, tool: item.tool, input: item.input, leaves: leaves(item.input), cwd: one.cwd,
          message, position,
        });
      } else if (item.kind === "result") {
        const call = callOf.get(item.id);
        if (call === undefined || answered.has(item.id)) continue;
        answered.add(item.id);
        history.results.push({ call, result: item, message, position });
      }
    }
  }
  return history;
}

// ---- terms

const TOKEN = /"([^"\n]*)"|`([^`\n]*)`|'([^'\n]*)'|([A-Za-z0-9_$./\\~@+,-]+)/g;
const WORD = /[A-Za-z0-9_$./\\~@+,-]+/g;
const NAME = /[A-Za-z0-9_$-]+/g;
const NUMBER = /[0-9][0-9.,_]*/g;
const EXTENSION = /[^/]\.[A-Za-z0-9]{1,8}$/;
const LETTER = /[A-Za-z]/;
const ERROR = /error|exception|traceback|panic|fatal|fail|assert|cannot|denied|not found|undefined/i;
const ERROR_CODE = /E[0-9]{4}/;

function terms(said) {
  const found = new Set();
  const token = new RegExp(TOKEN);
  for (let match = token.exec(said); match !== null; match = token.exec(said)) {
    if (match[4] !== undefined) {
      wordTerms(said, match.index, match[4], found);
      continue;
    }
    const content = match[1] ?? match[2] ?? match[3];
    const apostrophe = match[3] !== undefined && match.index > 0 && /[A-Za-z0-9]/.test(said[match.index - 1]);
    if (apostrophe || charCount(content) > 200) {
      token.lastIndex = match.index + 1;
      continue;
    }
    const term = content.trimStart().replace(/[\s\\]+$/, "");
    if (term.length >= 8 && charCount(term) >= 8 && LETTER.test(term)) found.add(term);
    for (const word of content.matchAll(WORD)) wordTerms(content, word.index, word[0], found);
  }
  for (const whole of said.split("\n")) {
    if (whole.length < 8 || !(ERROR.test(whole) || ERROR_CODE.test(whole))) continue;
    const line = whole.trim();
    const chars = charCount(line);
    if (chars >= 8 && chars <= 300) found.add(line);
  }
  return found;
}

function trimPath(chunk) {
  const path = chunk.replace(/[./\-+@~\\]+$/, "");
  return path.endsWith("$") && !path.endsWith("$$") ? path.slice(0, -1).replace(/[./\-+@~\\]+$/, "") : path;
}

function looksLikePath(path) {
  const at = path.lastIndexOf("/");
  return at >= 0 && (/^[/~.]/.test(path) || EXTENSION.test(path.slice(at + 1)) || path.indexOf("/") !== at);
}

function wordTerms(said, start, word, found) {
  const chunks = word.includes(",") ? word.split(",") : [word];
  chunks.forEach((chunk, number) => {
    if (chunk.includes("/")) {
      const path = trimPath(chunk.startsWith("//") ? chunk.replace(/^\/+/, "") : chunk);
      if (path.length >= 5 && path.length <= 400 && LETTER.test(path) && looksLikePath(path)) found.add(path);
    }
    if (number === 0 && chunk.startsWith("\\") && said[start - 1] === ":"
      && /(?:^|[^A-Za-z0-9])[A-Za-z]$/.test(said.slice(Math.max(0, start - 3), start - 1))) {
      const path = trimPath(chunk);
      if (path.length >= 5 && path.length <= 400 && LETTER.test(path)) found.add(path);
    }
    for (const [run] of chunk.matchAll(NAME)) {
      const name = run.replace(/^[-0-9]+/, "").replace(/-+$/, "");
      if (name.length >= 6 && name.length <= 200 && LETTER.test(name) && looksLikeIdentifier(name)) found.add(name);
    }
  });
  numbers(word, found);
}

const looksLikeIdentifier = (name) =>
  name.replace(/^_+|_+$/g, "").includes("_") || /[A-Za-z0-9]-[A-Za-z0-9]|[a-z0-9][A-Z]/.test(name);

function numbers(word, found) {
  NUMBER.lastIndex = 0;
  for (let run = NUMBER.exec(word); run !== null; run = NUMBER.exec(word)) {
    if (run.index > 0 && /[A-Za-z0-9_.]/.test(word[run.index - 1])) {
      NUMBER.lastIndex = run.index + 1;
      continue;
    }
    const number = run[0].replace(/[.,_]+$/, "");
    const after = word[run.index + number.length];
    if (after !== undefined && /[A-Za-z0-9_]/.test(after)) continue;
    const digits = number.replace(/[^0-9]/g, "").length;
    if (digits >= 4 && digits <= 40) found.add(number);
  }
}

// ---- notes

const DROPPED = /^\[output removed by compactd: (0|[1-9][0-9]*) chars; re-run the call to see it\]$/;
const CUT = /(?:^|\n)\[output cut by compactd: ([1-9][0-9]*) of ([1-9][0-9]*) chars removed; re-run the call to see it\]$/;
const TEXT = /\n\[text cut by compactd: ([1-9][0-9]*) of ([1-9][0-9]*) chars removed\]$/;
const NON_TEXT = "[image or other non-text output removed by compactd; re-run the call to see it]";
const INPUT = /\[input cut by compactd: ([1-9][0-9]*) chars\]$/;

// Where the note starts that a pattern finds, if its numbers are ours: below 2^64, not falling.
function noteAt(pattern, said) {
  if (!said.endsWith("]")) return -1;
  const found = pattern.exec(said);
  if (!found) return -1;
  const numbers = found.slice(1).map(BigInt);
  const ours = numbers.every((number, at) => number < 1n << 64n && (at === 0 || numbers[at - 1] <= number));
  return ours ? found.index : -1;
}

const isNoted = (said) => said === NON_TEXT || noteAt(DROPPED, said) >= 0 || noteAt(CUT, said) >= 0;
// A text without a note of ours at its end.
const withoutNote = (said) => {
  if (said === NON_TEXT) return "";
  if (said.endsWith(`\n${NON_TEXT}`)) return said.slice(0, -NON_TEXT.length - 1);
  for (const pattern of [DROPPED, CUT, TEXT, INPUT]) {
    const at = noteAt(pattern, said);
    if (at >= 0) return said.slice(0, at);
  }
  return said;
};
const droppedNote = (chars) => `[output removed by compactd: ${chars} chars; re-run the call to see it]`;
const cutText = (said) => {
  const total = charCount(said);
  const removed = Math.max(0, total - RERUNNABLE_CHARS);
  return `${head(said, RERUNNABLE_CHARS)}\n[output cut by compactd: ${removed} of ${total} chars removed; re-run the call to see it]`;
};
const inputNote = (leaf, keep) =>
  `${head(leaf, keep)}[input cut by compactd: ${Math.max(0, charCount(leaf) - keep)} chars]`;

// ---- lines

const REMINDER = /<system-reminder>[\s\S]*?<\/system-reminder>/g;
const NUMBERED = /^ *[0-9]{1,7}(?:\t|→|: )/;
const LIST_MARKS = /^(?:[\s>*+`-]|[0-9]+\.(?=\s|$))*/;

function readLines(body) {
  let lines = body.replace(REMINDER, "").split("\n");
  if (lines.every((line) => line.trim() === "" || NUMBERED.test(line))) lines = lines.map((line) => line.replace(NUMBERED, ""));
  lines = lines.map((line) => line.trimEnd());
  while (lines.length > 0 && lines[lines.length - 1] === "") lines.pop();
  return lines;
}

function holdRun(lines, part) {
  for (let at = 0; at + part.length <= lines.length; at += 1) {
    let same = 0;
    while (same < part.length && lines[at + same] === part[same]) same += 1;
    if (same === part.length) return part.length > 0;
  }
  return false;
}

const longEnough = (line) => line.length >= 40 && charCount(line) >= 40;
const quotableLines = (body) => body.split("\n").map((line) => line.trim()).filter(longEnough);
const quotingLines = (said) => said.split("\n")
  .map((line) => line.replace(LIST_MARKS, "").replace(/[\s`]+$/, "")).filter(longEnough);

// ---- the ladder

const STUB = /\bfile unchanged since (?:your )?last read\b/i;
const RULE_WORD = /\b(?:must|never|always|do not|don['’]t)\b/i;
const fileName = (path) => path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
const wrote = (action, path) => action.writes === "all"
  || action.writes.some((name) => fileName(name) === fileName(path));

const MAX_FILES = 32;
const MAX_PIECES = 32;

function readsOf(history, actions) {
  const reads = { superseded: new Set(), superseders: new Set(), latest: new Set(), stubs: new Set() };
  const all = [];
  const latest = new Map();
  // Reads that an earlier pass dropped: one behind may have been kept in their stead.
  const noted = [];
  history.results.forEach(({ result }, number) => {
    const paths = actions[number].reads;
    if (paths.length === 0 || result.isError) return;
    if (isNoted(result.text)) {
      for (const path of paths) noted.push({ number, path });
      return;
    }
    if (charCount(result.body) <= 400 && STUB.test(result.body)) {
      reads.stubs.add(number);
      if (latest.has(paths[0])) reads.stubs.add(latest.get(paths[0]));
      return;
    }
    let pieces = result.pieces.map(readLines).filter((lines) => lines.length > 0);
    if (pieces.length > MAX_PIECES) pieces = [pieces.flat()];
    if (pieces.length === 0) return;
    for (const path of paths) latest.set(path, number);
    all.push({ number, paths, pieces });
  });
  for (const number of latest.values()) reads.latest.add(number);
  const wroteOne = (action, paths) => paths.some((path) => wrote(action, path));
  const byPath = new Map();
  for (const read of all) {
    for (const path of read.paths) {
      if (byPath.has(path)) byPath.get(path).push(read);
      else byPath.set(path, [read]);
    }
  }
  const shownAgain = (read, piece) => {
    const sharing = read.paths.length === 1 ? byPath.get(read.paths[0])
      : all.filter((later) => later.paths.some((path) => read.paths.includes(path)));
    for (const later of sharing) {
      if (later.number <= read.number) continue;
      if (actions.slice(read.number, later.number).some((action) => wroteOne(action, read.paths))) return null;
      if (later.pieces.some((own) => holdRun(own, piece))) return later.number;
    }
    return null;
  };
  for (const read of all) {
    const shownBy = read.pieces.map((piece) => shownAgain(read, piece));
    if (shownBy.includes(null)) continue;
    reads.superseded.add(read.number);
    for (const number of shownBy) reads.superseders.add(number);
  }
  for (const { number, path } of noted) {
    for (const later of byPath.get(path) ?? []) {
      if (later.number > number
        && !actions.slice(number, later.number).some((action) => wrote(action, path))) {
        reads.superseders.add(later.number);
      }
    }
  }
  return reads;
}

function vocabularyOf(history) {
  return {
    ofResult: history.results.map(({ result }) => terms(withoutNote(result.body))),
    ofCall: history.calls.map((call) => call.leaves.map((leaf) => terms(withoutNote(leaf)))),
    ofText: history.texts.map((spoken) => terms(withoutNote(spoken.text))),
    inputs: history.calls.map((call) => {
      const bytes = call.leaves.reduce((sum, leaf) => sum + Buffer.byteLength(leaf) + 1, 0);
      return bytes <= 4096 ? call.leaves.join("\n") : null;
    }),
  };
}

const own = (vocabulary, call, term) => {
  const input = vocabulary.inputs[call];
  return input === null ? vocabulary.ofCall[call].some((leaf) => leaf.has(term)) : input.includes(term);
};

function referencedOf(history, vocabulary) {
  const holders = new Map();
  for (const all of vocabulary.ofResult) for (const term of all) holders.set(term, (holders.get(term) ?? 0) + 1);
  const uses = new Map();
  const use = (term, at) => {
    const known = uses.get(term);
    if (known) known.push(at);
    else uses.set(term, [at]);
  };
  history.texts.forEach((spoken, at) => {
    for (const term of vocabulary.ofText[at]) use(term, spoken);
  });
  history.calls.forEach((call, at) => {
    for (const leaf of vocabulary.ofCall[at]) for (const term of leaf) use(term, call);
  });
  return history.results.map((answer, number) => {
    for (const term of vocabulary.ofResult[number]) {
      const used = uses.get(term)?.some((at) => at.position > answer.position && at.message > answer.message);
      if (used && holders.get(term) <= GENERIC_ABOVE && !own(vocabulary, answer.call, term)) return true;
    }
    return false;
  });
}

function firstUsesOf(history, vocabulary) {
  const events = [
    ...history.results.map((answer, at) => [answer.position, "result", at]),
    ...history.texts.map((spoken, at) => [spoken.position, "text", at]),
    ...history.calls.map((call, at) => [call.position, "call", at]),
  ].sort((a, b) => a[0] - b[0]);
  const holders = new Map();
  // Per term, the results that wait for its use.
  const waiting = new Map();
  const firstUse = (term, message) => {
    const count = holders.get(term);
    const results = waiting.get(term);
    if (count === undefined || count > GENERIC_ABOVE || results === undefined) return [];
    waiting.set(term, results.filter((result) => result.message >= message));
    return results.filter((result) => result.message < message);
  };
  // Per call and term, the results that the use was the first to reference.
  const firstUses = new Map();
  for (const [, kind, at] of events) {
    if (kind === "result") {
      const { call, message } = history.results[at];
      for (const term of vocabulary.ofResult[at]) {
        holders.set(term, (holders.get(term) ?? 0) + 1);
        if (own(vocabulary, call, term)) continue;
        const results = waiting.get(term);
        if (results) results.push({ number: at, message });
        else waiting.set(term, [{ number: at, message }]);
      }
    } else if (kind === "text") {
      for (const term of vocabulary.ofText[at]) firstUse(term, history.texts[at].message);
    } else {
      for (const leaf of vocabulary.ofCall[at]) {
        for (const term of leaf) {
          const results = firstUse(term, history.calls[at].message);
          if (results.length === 0) continue;
          if (!firstUses.has(at)) firstUses.set(at, new Map());
          const ofTerm = firstUses.get(at);
          ofTerm.set(term, [...(ofTerm.get(term) ?? []), ...results.map((result) => result.number)]);
        }
      }
    }
  }
  return firstUses;
}

const LONG_LEAF = 400;
const KEPT = 200;

function shortened(input) {
  if (typeof input === "string") return charCount(input) > LONG_LEAF ? inputNote(input, KEPT) : input;
  if (Array.isArray(input)) return input.map(shortened);
  if (!isObject(input)) return input;
  return Object.fromEntries(Object.entries(input).map(([key, value]) => [key, shortened(value)]));
}

function gainOf(history, vocabulary, number, firstUses, stays) {
  const call = history.calls[number];
  let freed = 0;
  const kept = new Set();
  for (const leaf of call.leaves) {
    const chars = charCount(leaf);
    if (chars > LONG_LEAF) freed += chars - charCount(inputNote(leaf, KEPT));
    const stays = chars > LONG_LEAF ? head(leaf, KEPT) : withoutNote(leaf);
    for (const term of terms(stays)) kept.add(term);
  }
  const first = firstUses.get(number);
  if (freed === 0) return null;
  for (const [term, results] of first ?? []) if (!kept.has(term) && results.some(stays)) return null;
  // By the input alone: what ran in it stays known.
  const [whole, after] = [call.input, shortened(call.input)]
    .map((input) => actionOf(history.host, call.tool, input, call.cwd, nothingRan()));
  const same = JSON.stringify(whole.reads) === JSON.stringify(after.reads) && JSON.stringify(whole.writes) === JSON.stringify(after.writes);
  return same ? freed : null;
}

function decide(history) {
  const vocabulary = vocabularyOf(history);
  const actions = history.results.map(({ call: at, result }) => {
    const call = history.calls[at];
    let action = actionOf(history.host, call.tool, call.input, call.cwd, result.ran);
    if (result.ran.unsure || action.reads.length > MAX_FILES) {
      action = { ...action, reads: [], rerunnable: null, unsure: true };
    }
    if (result.isError && isEditTool(call.tool)) action = { ...action, writes: [] };
    return result.running === null ? action : { ...action, rerunnable: null };
  });
  const reads = readsOf(history, actions);
  const referenced = referencedOf(history, vocabulary);
  const quotes = new Map();
  for (const spoken of history.texts) {
    for (const line of quotingLines(spoken.text)) {
      quotes.set(line, Math.max(quotes.get(line) ?? 0, spoken.message));
    }
  }
  const reference = options.profile === "reference";
  const firstUses = reference ? new Map() : firstUsesOf(history, vocabulary);
  const count = history.results.length;
  const rule = (number, answer) => {
    const { result, message } = answer;
    if (isNoted(result.text)) return ["keep", "noted"];
    if (message === 0 || message >= Math.max(0, history.messages - PIN_LAST) || result.isError
      || reads.stubs.has(number)) return ["keep", "pinned"];
    if (quotableLines(result.body).some((line) => (quotes.get(line) ?? -1) > message)) return ["keep", "never_drop"];
    let behind = 0;
    for (let end = history.texts.length; behind < end;) {
      const middle = (behind + end) >> 1;
      if (history.texts[middle].position < answer.position) behind = middle + 1;
      else end = middle;
    }
    for (let at = behind; at < history.texts.length; at += 1) {
      const spoken = history.texts[at];
      if (spoken.message <= message || spoken.text.trim() === "") continue;
      if (spoken.message - message <= 2 && RULE_WORD.test(spoken.text)) return ["keep", "never_drop"];
      break;
    }
    if (reads.superseded.has(number)) return ["drop", "superseded_read"];
    if (reads.superseders.has(number)) return ["keep", "superseder"];
    if (reads.latest.has(number)) return ["keep", "latest_read"];
    let name = "unreferenced";
    if (result.text.trim() === "" || (result.opaque && vocabulary.ofResult[number].size === 0)
      || actions[number].unsure) name = "undecided";
    else if (count - 1 - number < RECENT_RESULTS) name = "too_recent";
    else if (referenced[number]) name = "referenced";
    if (name === "unreferenced") return ["drop", name];
    const { rerunnable } = actions[number];
    if (rerunnable && (name !== "referenced" || rerunnable.evenIfUsed)
      && !(rerunnable.needsPass && showsFailure(withoutNote(result.body)))
      && charCount(cutText(result.text)) < charCount(result.text)) return ["truncate", "rerunnable"];
    return ["keep", name];
  };

  const rules = history.results.map((answer, number) => rule(number, answer));
  const stays = (number) => rules[number][0] === "keep";
  return history.results.map((answer, number) => {
    let [decision, name] = rules[number];
    const call = history.calls[answer.call];
    const chars = charCount(answer.result.text);
    let fate = "kept";
    if (decision === "drop" && reference) {
      if (actions[number].reads.length === 0) fate = "removed";
    } else if (decision === "drop") {
      const gain = gainOf(history, vocabulary, answer.call, firstUses, stays);
      if (droppedNote(chars).length >= chars + (gain ?? 0)) [decision, name] = ["keep", "no_gain"];
      else if (gain !== null) fate = "shortened";
    }
    let left = null;
    if (decision === "drop" && fate !== "removed") left = droppedNote(chars);
    else if (decision === "truncate") left = cutText(answer.result.text);
    return [call.id, call.tool, chars, decision, fate, name, left];
  });
}

function rescan(file) {
  const values = [];
  for (const line of readFileSync(file, "utf8").split("\n")) {
    const value = parseLine(line);
    if (value !== null) values.push(value);
  }
  let host = null;
  for (let at = 0; at < values.length && host === null; at += 1) host = sniff(values[at]);
  let rows = [];
  if (host === "claude") {
    const records = values.map(claudeRecord).filter((record) => record !== null);
    rows = options.history === "whole" ? claudeWhole(records) : claudeContext(records);
  } else if (host === "codex") {
    const records = codexRecords(values);
    rows = options.history === "whole" ? records.filter((record) => record.kind === "row") : codexContext(records);
  }
  const results = decide(historyOf(host, rows));
  if (options.dump) process.stdout.write(results.map((one) => `${JSON.stringify(one)}\n`).join(""));
  return results.length;
}

let count = 0;
for (const file of files) count += rescan(file);
if (!options.dump) process.stdout.write(`${count}\n`);
