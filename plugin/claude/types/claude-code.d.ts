// The few types of Claude Code's module 'claude-code' that this mod uses, declared by hand so that it
// can be checked without the host. Where the host is installed, a test checks it against its own.

declare module 'claude-code' {
  /** One row of the transcript: a text, a call or a result stands alone in it, or several together. */
  export type SessionMessage = {
    role: 'user' | 'assistant'
    text: string
    toolUses: ToolUseSummary[]
    toolResults?: ToolResultSummary[]
    /** What the host knows the row by: its uuid. Absent on a message that a hook built. */
    handle?: string
  }

  export type ToolUseSummary = {
    tool_use_id: string
    tool: string
    input: Record<string, unknown>
  }

  export type ToolResultSummary = {
    tool_use_id: string
    text: string
    isError: boolean
  }

  export type SessionCompactTrigger = 'manual' | 'auto' | 'plugin' | 'precompute'

  export type SessionCompactInput = {
    trigger: SessionCompactTrigger
    agentId?: string
    instructions?: string
    messages: readonly SessionMessage[]
  }

  export type SessionCompactResult =
    | { messages: readonly SessionMessage[]; tokensBefore?: number; tokensAfter?: number; skip?: undefined }
    | { skip: string; messages?: undefined }

  export type EngineInterface = {
    clock: { sleep: (ms: number) => Promise<void> }
    env: { get: (name: string) => Promise<string | undefined> }
    http: {
      fetch: (
        url: string,
        init?: { method?: string; headers?: Record<string, string>; body?: string; socketPath?: string },
      ) => Promise<{ status: number; ok: boolean; text: string }>
    }
    session: {
      info: () => Promise<{ transcriptPath: string }>
      usage: (args?: { breakdown?: 'summary' }) => Promise<{
        context: { tokens?: number; window: number; breakdown?: { rawMaxTokens: number; autoCompactThreshold?: number } }
      }>
    }
  }

  type Hook<E, R> = ($: EngineInterface, e: E, next: (e: E) => Promise<R>) => R | Promise<R>

  export type On = {
    (event: 'session.start', hook: Hook<object, object>): unknown
    (event: 'session.compact', hook: Hook<SessionCompactInput, SessionCompactResult>): unknown
  }

  export type Register = (on: On) => unknown
}

/** Of the environment that a mod runs in. */
declare var performance: { now(): number }
