// compactd's answer to a compaction: asks the daemon which results may go, and hands the host the
// messages without them. Whatever goes wrong, the host compacts as it would without us.

import type { EngineInterface, Register, SessionCompactInput } from 'claude-code'
import { rewrite, type Counts } from './rewrite'
import {
  answerFrom,
  BODY_MAX,
  lacks,
  PROTOCOL,
  request,
  sessionOf,
  sizeOf,
  thresholdOf,
  type Answer,
  type Context,
} from './wire'

/** The host sets no deadline for what a hook asks of others, so this is ours. */
const DEADLINE_MS = 1500

/** So long a report is waited for at most, where something rests on it. */
const REPORT_MS = 200

/** A row that the host has just appended may not be in its file yet, a sub-agent's least of all. */
const WAITS_MS = [10, 20, 40, 80, 160, 320]

/** To measure its context by category costs the host some 10 ms for each MB. */
const MEASURED_CHARS = 4_000_000

const HEADERS = { 'content-type': 'application/json', 'compactd-protocol': String(PROTOCOL) }

/** What stays the same while the host runs. */
type Environment = { socketPath: string | undefined; window: string | undefined; percent: string | undefined }

type Asked = { answer: Answer; socketPath: string; session: string }

export const register: Register = on => {
  on('session.start', ($, e, next) => {
    // The first call of each kind costs the host some milliseconds: they pass while nobody waits.
    warmUp($).catch(() => undefined)
    return next(e)
  })

  on('session.compact', async ($, e, next) => {
    // A decision is there in no time when it is needed: none is made ahead.
    if (e.trigger === 'precompute') return { skip: 'compactd decides when the compaction comes' }
    const started = performance.now()
    const asked = await Promise.race([ask($, e).catch(() => undefined), $.clock.sleep(DEADLINE_MS)])
    if (!asked) return next(e)
    const { answer } = asked
    if (answer.outcome === 'skip' && e.trigger !== 'auto') {
      return { skip: `compactd: ${answer.reason ?? 'there is nothing to remove'}` }
    }
    if (answer.outcome !== 'apply' && answer.outcome !== 'escalate') return next(e)
    const done = lacks(e.messages, answer) ? undefined : rewrite(e.messages, answer)
    // Never a no-op on an automatic compaction: the host would ask again at once.
    const isNothing = e.trigger === 'auto' && answer.outcome === 'apply' && !done?.isSmaller
    if (done === undefined || done.messages.length === 0 || isNothing) {
      void report($, asked, 'left', started)
      return next(e)
    }
    if (answer.outcome === 'escalate') {
      // The host's own hooks come next: they ask whether the focus text was handed over.
      await Promise.race([report($, asked, 'handed_over', started, done.counts), $.clock.sleep(REPORT_MS)])
      const instructions = [e.instructions, answer.focus].filter(Boolean).join('\n\n')
      return next({ ...e, messages: done.messages, ...(instructions ? { instructions } : {}) })
    }
    void report($, asked, 'applied', started, done.counts)
    const { tokens_before: tokensBefore, tokens_after: tokensAfter } = answer.counters
    return { messages: done.messages, tokensBefore, tokensAfter }
  })
}

async function ask($: EngineInterface, e: SessionCompactInput): Promise<Asked | undefined> {
  const [{ transcriptPath }, environment, context] = await Promise.all([
    $.session.info(),
    environmentOf($),
    contextOf($, e),
  ])
  const { socketPath } = environment
  if (!socketPath) return undefined
  const body = request(e, transcriptPath, context)
  if (body.length > BODY_MAX) return undefined
  for (let tried = 0; ; tried += 1) {
    const init = { method: 'POST', headers: HEADERS, body, socketPath }
    const response = await $.http.fetch('http://localhost/v1/compact', init)
    const answer = response.ok ? answerFrom(response.text, e.messages.length) : undefined
    if (answer === undefined) return undefined
    const wait = WAITS_MS[tried]
    if (wait === undefined || !lacks(e.messages, answer)) {
      return { answer, socketPath, session: e.agentId ?? sessionOf(transcriptPath) }
    }
    await $.clock.sleep(wait)
  }
}

/** How full the context is, what fits, and where the host compacts by itself, in tokens. */
async function contextOf($: EngineInterface, e: SessionCompactInput): Promise<Context> {
  const [{ context }, { window, percent }] = await Promise.all([$.session.usage(), environmentOf($)])
  // How full a sub-agent's own context is, the host does not say.
  if (e.agentId !== undefined) return thresholdOf({ window: context.window }, window, percent)
  if (e.trigger !== 'auto' || sizeOf(e.messages) > MEASURED_CHARS) {
    return thresholdOf(context, window, percent)
  }
  const { breakdown } = (await $.session.usage({ breakdown: 'summary' })).context
  const known = thresholdOf({ ...context, window: breakdown?.rawMaxTokens ?? context.window }, undefined, percent)
  return { ...known, threshold: Math.min(known.threshold ?? Infinity, breakdown?.autoCompactThreshold ?? Infinity) }
}

let environment: Promise<Environment> | undefined

function environmentOf($: EngineInterface): Promise<Environment> {
  environment ??= readEnvironment($).catch(error => {
    environment = undefined
    throw error
  })
  return environment
}

async function readEnvironment($: EngineInterface): Promise<Environment> {
  const [socket, home, window, percent] = await Promise.all([
    $.env.get('COMPACTD_SOCKET'),
    $.env.get('HOME'),
    $.env.get('CLAUDE_CODE_AUTO_COMPACT_WINDOW'),
    $.env.get('CLAUDE_AUTOCOMPACT_PCT_OVERRIDE'),
  ])
  // The same path that everyone computes from HOME alone: a link to where the daemon listens.
  const socketPath = socket || (home ? `${home}/.local/state/compactd/api.sock` : undefined)
  return { socketPath, window, percent }
}

async function warmUp($: EngineInterface): Promise<void> {
  const [{ socketPath }] = await Promise.all([environmentOf($), $.session.info(), $.session.usage()])
  if (socketPath) await $.http.fetch('http://localhost/v1/status', { socketPath })
}

/** Tells the daemon what became of its answer. */
async function report(
  $: EngineInterface,
  asked: Asked,
  outcome: string,
  started: number,
  counts?: Counts,
): Promise<void> {
  const { answer, socketPath, session } = asked
  const body = JSON.stringify({ outcome, ...counts, millis: performance.now() - started })
  const url = `http://localhost/v1/sessions/${session}/passes/${answer.compaction}`
  await $.http.fetch(url, { method: 'POST', headers: HEADERS, body, socketPath }).catch(() => undefined)
}
