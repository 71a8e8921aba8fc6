/** What belongs to the person at the page, and stays when the server's newer HTML is worked into it. */

import { HOLDER } from './plots.js'

export function startMorph(): void {
  Object.assign(Idiomorph.defaults.callbacks, {
    beforeNodeRemoved: (node: Node) => node.nodeName.toLowerCase() !== HOLDER,
    beforeAttributeUpdated: (name: string, element: Element) => !isTheirs(name, element)
  })
}

/** Rows that are ticked, what is folded out, a dialog that is open. */
function isTheirs(name: string, element: Element): boolean {
  return name === 'open' || (name === 'checked' && element.matches('[data-select], [data-select-all]'))
}
