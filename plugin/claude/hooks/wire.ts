// What travels between this mod and the daemon (docs/api.md): ids and sizes there, decisions back, no
// text of a message in either direction; texts that only the host keeps come back with the answer.

import type { SessionCompactInput, SessionMessage } from 'claude-code'

export const PROTOCOL = 1

/** The host's own limit for a request's body, in characters. */
export const BODY_MAX = 4_194_304

/** What the host says about its context, in tokens. */
export type Context = { usage?: { tokens?: number; window: number }; threshold?: number }

/** One string of a call's input: its place among strings and numbers, its length, the cut, and what goes. */
export type Leaf = readonly [leaf: number, utf16: number, cut: number, removed: number]

export type Decision = {
  id: string
  decision: 'truncate' | 'drop'
  chars: number
  removed?: number
  cut_utf16?: number
  call: 'kept' | 'shortened' | 'removed'
  leaves?: readonly Leaf[]
}

export type Answer = {
  protocol: number
  compaction: number
  outcome: 'apply' | 'skip' | 'escalate' | 'unready'
  reason?: string
  /** By row of the request: the number of its API message. */
  ordinals: readonly (number | null)[]
  /** Ids that the daemon does not have. */
  unknown?: readonly string[]
  decisions: readonly Decision[]
  /** Rows whose text is shortened: row, its characters, how many of them stay. */
  texts?: readonly (readonly [row: number, chars: number, keep: number])[]
  /** Results that hold something that is no text. */
  opaque?: readonly string[]
  /** Texts that only the host keeps: the row that each stands behind, and the text. */
  attached?: readonly (readonly [row: number, text: string])[]
  focus?: string
  counters: { tokens_before: number; tokens_after: number }
}

/** A transcript's session id is its file's name. */
export function sessionOf(transcript: string): string {
  return transcript.slice(transcript.lastIndexOf('/') + 1).replace(/\.jsonl$/, '')
}

/** Characters of all texts, inputs and results, about: UTF-16 units. */
export function sizeOf(messages: readonly SessionMessage[]): number {
  return messages.reduce((sum, message) => sum + charsOf(message), 0)
}

function charsOf({ role, text, toolUses, toolResults = [] }: SessionMessage): number {
  const results = toolResults.reduce((sum, result) => sum + result.text.length, 0)
  const calls = role === 'assistant' ? toolUses : []
  return calls.reduce((sum, use) => sum + JSON.stringify(use.input).length, text.length + results)
}

/** The request's body. */
export function request(e: SessionCompactInput, transcript: string, context: Context): string {
  const rows = e.messages.map(message => {
    const tools = message.role === 'assistant' ? message.toolUses : message.toolResults
    return {
      row: message.handle,
      role: message.role,
      ids: tools?.length ? tools.map(one => one.tool_use_id) : undefined,
      chars: charsOf(message) || undefined,
      is_error: message.toolResults?.some(result => result.isError) || undefined,
    }
  })
  const { trigger, agentId: agent, instructions } = e
  const session = sessionOf(transcript)
  return JSON.stringify({ host: 'claude', session, transcript, trigger, agent, instructions, ...context, rows })
}

/** The answer, if it is one of this protocol to a request of so many rows. */
export function answerFrom(text: string, rows: number): Answer | undefined {
  const answer = JSON.parse(text) as Partial<Answer> | null
  if (answer?.protocol !== PROTOCOL || !answer.counters) return undefined
  if (!Array.isArray(answer.ordinals) || !Array.isArray(answer.decisions)) return undefined
  const isDecided = answer.outcome === 'apply' || answer.outcome === 'escalate'
  return isDecided && answer.ordinals.length !== rows ? undefined : (answer as Answer)
}

/** Whether the daemon does not have everything that stands in the context. */
export function lacks(messages: readonly SessionMessage[], answer: Answer): boolean {
  if (answer.outcome !== 'apply' && answer.outcome !== 'escalate') return false
  if (answer.unknown?.length) return true
  return messages.some(({ role, text, toolUses, toolResults }, row) => {
    const isBuilt = role === 'assistant' ? text !== '' || toolUses.length > 0 : toolResults?.length
    return isBuilt && typeof answer.ordinals[row] !== 'number'
  })
}

/**
 * Where the host compacts by itself, as far as its variables say: 33,000 tokens below the window, or at
 * a share of the window less 20,000.
 */
export function thresholdOf(
  usage: { tokens?: number; window: number },
  asked: string | undefined,
  percent: string | undefined,
): Context {
  const smaller = Number(asked)
  const window = smaller >= 100_000 ? Math.min(usage.window, smaller) : usage.window
  const share = Number(percent)
  const shared = share > 0 && share <= 100 ? ((window - 20_000) * share) / 100 : Infinity
  return { usage: { tokens: usage.tokens, window }, threshold: Math.floor(Math.min(window - 33_000, shared)) }
}
