/**
 * Loaded into a worker before anything of its own: the first answer to the question whether a number is on WhatsApp says
 * nothing about it, neither yes nor no.
 */
import { USyncQuery } from 'baileys'

const { prototype } = USyncQuery
const really = prototype.parseUSyncQueryResult
let blank = true

prototype.parseUSyncQueryResult = function (this: USyncQuery, answer) {
  const names = this.protocols.map(({ name }) => name)
  if (!blank || names.join() !== 'contact') return really.call(this, answer)
  blank = false
  return { list: [], sideList: [] }
}
