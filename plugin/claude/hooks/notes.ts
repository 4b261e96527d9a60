// The notes that stand where something went, byte for byte as docs/rules.md §7 defines them: the daemon
// knows them again by these bytes.

/** In the place of a result of so many characters. */
export function dropped(chars: number): string {
  return `[output removed by compactd: ${chars} chars; re-run the call to see it]`
}

/** Behind what is left of a result. */
export function cut(removed: number, chars: number): string {
  return `\n[output cut by compactd: ${removed} of ${chars} chars removed; re-run the call to see it]`
}

/** Behind what is left of a long string in a call's input. */
export function shortened(removed: number): string {
  return `[input cut by compactd: ${removed} chars]`
}

/** Behind what is left of an assistant's text. */
export function text(removed: number, chars: number): string {
  return `\n[text cut by compactd: ${removed} of ${chars} chars removed]`
}

/** In the place of a picture or another part that is no text, which a message cannot be built with. */
export const NOT_TEXT = '[image or other non-text output removed by compactd; re-run the call to see it]'
