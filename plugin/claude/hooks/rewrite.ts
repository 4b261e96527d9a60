// The messages after a compaction, built from those before it and the daemon's decisions.
//
// The host stores every message that it is handed again. One that comes with its handle keeps its old
// message id, and a resume then brings back what was taken out of it. So only what a person wrote keeps
// its handle (it carries the attachments); assistant messages and results are built anew, one for each
// API message. Rows of one API message are often apart, which is why the daemon's numbers group them.
//
// What the host attached to such a message (a prompt typed while a tool ran, a skill's body) goes with
// it and is not among the messages: the daemon gives it back as text.

import type { SessionMessage, ToolResultSummary, ToolUseSummary } from 'claude-code'
import * as notes from './notes'
import type { Answer, Decision, Leaf } from './wire'

/** What became of the results; `left_alone` are those whose text is not what the daemon knows. */
export type Counts = { kept: number; truncated: number; dropped: number; left_alone: number }

export type Rewrite = { messages: SessionMessage[]; counts: Counts; isSmaller: boolean }

/** Undefined where it cannot be built for certain: a row that the daemon does not know. */
export function rewrite(messages: readonly SessionMessage[], answer: Answer): Rewrite | undefined {
  const plan = planOf(messages, answer)
  const out: SessionMessage[] = []
  const built = new Map<number, SessionMessage>()
  // Results stand right behind their calls, whatever else came in between.
  let behindCalls = 0
  for (const [row, message] of messages.entries()) {
    const isResult = message.role === 'user' && message.toolResults !== undefined && message.toolResults.length > 0
    const text = textOf(message, row, plan)
    if (message.role === 'user' && !isResult) out.push(message)
    else if (text !== '' || isResult || message.toolUses.length > 0) {
      const ordinal = answer.ordinals[row]
      if (typeof ordinal !== 'number') return undefined
      let into = built.get(ordinal)
      if (into === undefined) {
        into = { role: message.role, text: '', toolUses: [], ...(isResult ? { toolResults: [] } : {}) }
        built.set(ordinal, into)
        if (isResult) out.splice(behindCalls++, 0, into)
        else behindCalls = out.push(into)
      }
      if (into.role !== message.role) return undefined
      into.text = into.text && text ? `${into.text}\n${text}` : into.text || text
      into.toolUses.push(...message.toolUses.flatMap(use => callOf(use, plan)))
      into.toolResults?.push(...(message.toolResults ?? []).flatMap(result => resultOf(result, plan)))
    }
    for (const attached of plan.attached.get(row) ?? []) out.push({ role: 'user', text: attached, toolUses: [] })
  }
  const holds = (one: SessionMessage) => one.text !== '' || one.toolUses.length > 0 || one.toolResults?.length
  const isSmaller = plan.counts.truncated + plan.counts.dropped + plan.texts.size > 0
  return { messages: out.filter(one => one.handle !== undefined || holds(one)), counts: plan.counts, isSmaller }
}

type Plan = {
  /** By call id, for the results whose text is the one that was decided about. */
  decisions: Map<string, Decision>
  texts: Map<number, readonly [chars: number, keep: number]>
  opaque: Set<string>
  /** By the row that they stand behind. */
  attached: Map<number, string[]>
  counts: Counts
}

function planOf(messages: readonly SessionMessage[], answer: Answer): Plan {
  const decisions = new Map(answer.decisions.map(decision => [decision.id, decision]))
  const counts = { kept: 0, truncated: 0, dropped: 0, left_alone: 0 }
  for (const { toolResults } of messages) {
    for (const { tool_use_id: id, text } of toolResults ?? []) {
      const decision = decisions.get(id)
      if (decision === undefined) counts.kept += 1
      else if (!hasChars(text, decision.chars)) {
        decisions.delete(id)
        counts.left_alone += 1
      } else if (decision.decision === 'truncate') counts.truncated += 1
      else counts.dropped += 1
    }
  }
  const texts = new Map(answer.texts?.map(([row, chars, keep]) => [row, [chars, keep] as const]))
  const attached = new Map<number, string[]>()
  for (const [row, text] of answer.attached ?? []) attached.set(row, [...(attached.get(row) ?? []), text])
  return { decisions, texts, opaque: new Set(answer.opaque), attached, counts }
}

function textOf({ text }: SessionMessage, row: number, plan: Plan): string {
  const [chars, keep] = plan.texts.get(row) ?? []
  if (chars === undefined || keep === undefined || !hasChars(text, chars)) return text
  return text.slice(0, unitsOf(text, keep)) + notes.text(chars - keep, chars)
}

function callOf({ tool_use_id, tool, input }: ToolUseSummary, plan: Plan): ToolUseSummary[] {
  const decision = plan.decisions.get(tool_use_id)
  if (decision?.call === 'removed') return []
  const left = decision?.call === 'shortened' ? shorten(input, decision.leaves ?? []) : input
  return [{ tool_use_id, tool, input: left }]
}

function resultOf({ tool_use_id, text, isError }: ToolResultSummary, plan: Plan): ToolResultSummary[] {
  const decision = plan.decisions.get(tool_use_id)
  if (decision?.decision === 'drop') {
    return decision.call === 'removed' ? [] : [{ tool_use_id, isError, text: notes.dropped(decision.chars) }]
  }
  if (decision?.decision === 'truncate') {
    const left = text.slice(0, decision.cut_utf16) + notes.cut(decision.removed ?? 0, decision.chars)
    return [{ tool_use_id, isError, text: left }]
  }
  if (!plan.opaque.has(tool_use_id)) return [{ tool_use_id, isError, text }]
  return [{ tool_use_id, isError, text: text ? `${text}\n${notes.NOT_TEXT}` : notes.NOT_TEXT }]
}

/** The input with its long strings cut, or as it is where one of them is not what the daemon knows. */
function shorten(input: Record<string, unknown>, leaves: readonly Leaf[]): Record<string, unknown> {
  const cuts = new Map(leaves.map(leaf => [leaf[0], leaf]))
  let at = 0
  let done = 0
  const walk = (value: unknown): unknown => {
    if (typeof value === 'string' || typeof value === 'number') {
      const cut = cuts.get(at++)
      if (cut === undefined || typeof value !== 'string' || value.length !== cut[1]) return value
      done += 1
      return value.slice(0, cut[2]) + notes.shortened(cut[3])
    }
    if (Array.isArray(value)) return value.map(walk)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, walk(one)]))
  }
  const left = walk(input) as Record<string, unknown>
  return done === leaves.length ? left : input
}

/** Whether a text has so many characters (Unicode scalar values; a lone surrogate counts as one). */
function hasChars(text: string, chars: number): boolean {
  if (text.length === chars) return true
  return text.length > chars && text.length - (text.match(PAIRS)?.length ?? 0) === chars
}

const PAIRS = /[\ud800-\udbff][\udc00-\udfff]/g

/** UTF-16 units of the first characters of a text. */
function unitsOf(text: string, chars: number): number {
  let units = 0
  for (let left = chars; left > 0 && units < text.length; left -= 1) {
    units += (text.codePointAt(units) ?? 0) > 0xffff ? 2 : 1
  }
  return units
}
