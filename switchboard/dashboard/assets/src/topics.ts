/** What has changed, and who listens to it. */

/** The topics in a `changed` event; none if it makes no sense. */
export function topicsIn(data: string): Set<string> {
  try {
    const { topics } = JSON.parse(data) as { topics?: unknown }
    return new Set(Array.isArray(topics) ? topics.filter(topic => typeof topic === 'string') : [])
  } catch {
    return new Set()
  }
}

/** `listening` is what an element names in `data-on`. */
export function listensTo(listening: string | undefined, changed: ReadonlySet<string>): boolean {
  return (listening ?? '').split(/\s+/).some(topic => changed.has(topic))
}

/** Without those that come along with another one around them. */
export function outermost<L extends { contains(other: L): boolean }>(listeners: readonly L[]): L[] {
  return listeners.filter(inner => !listeners.some(outer => outer !== inner && outer.contains(inner)))
}
