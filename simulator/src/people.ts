/**
 * Contacts with a life of their own, for the demo: they read, answer, ask to be left alone, or write first. What a
 * person does depends on the phone number and the message id alone, so a run can be repeated.
 */
import { createHash } from 'node:crypto'
import type { Phone, ShownMessage, WhatsApp } from './types.js'

export type Temperament = 'friendly' | 'quiet' | 'annoyed' | 'away'

export interface Timers {
  /** Answers the way to cancel it. */
  after(ms: number, act: () => void): () => void
}

export interface Reaction {
  /** Null: never. */
  readonly readAfterMs: number | null
  readonly answer: { readonly afterMs: number; readonly text: string } | null
}

export interface PeopleOptions {
  readonly timers?: Timers
  /** How often somebody writes first to each account that is online. */
  readonly strangerEveryMs?: number
  readonly log?: (line: string) => void
}

const STOP_WORDS = ['STOP', 'הסר', 'HASR']
const HEBREW_ANSWERS = ['תודה!', 'מעולה, תודה רבה', 'אשמח לפרטים', 'אחזור אליך בערב', '👍', 'קיבלתי, יום טוב']
const ENGLISH_ANSWERS = ['Thanks!', 'Great, thank you', 'Tell me more', "I'll get back to you tonight", '👍', 'Got it']
const HEBREW_OPENINGS = ['היי, אתם פתוחים היום?', 'שלום, יש לי שאלה', 'אפשר לקבוע תור למחר?']
const ENGLISH_OPENINGS = ['Hi, are you open today?', 'Hello, I have a question', 'Can I book for tomorrow?']
const AREAS = ['202', '212', '303', '312', '415', '617']
const STRANGER_EVERY_MS = 90_000

const REAL_TIMERS: Timers = {
  after(ms, act) {
    const timer = setTimeout(act, ms)
    return () => clearTimeout(timer)
  }
}

/** Of a hundred people: 8 never read, 5 say STOP, 35 answer now and then, the others only read. */
export function temperamentOf(phone: Phone): Temperament {
  const draw = chance('temperament', phone)
  if (draw < 0.08) return 'away'
  if (draw < 0.13) return 'annoyed'
  return draw < 0.48 ? 'friendly' : 'quiet'
}

/** What the recipient does about a message. */
export function reactionTo({ to, id }: Pick<ShownMessage, 'to' | 'id'>): Reaction {
  const temperament = temperamentOf(to)
  if (temperament === 'away') return { readAfterMs: null, answer: null }
  const readAfterMs = between(2_000, 40_000, chance('read', to, id))
  const afterMs = readAfterMs + between(3_000, 30_000, chance('answer', to, id))
  if (temperament === 'annoyed') return { readAfterMs, answer: { afterMs, text: pick(STOP_WORDS, 'stop', to) } }
  // Not every message: two programs that answer each other would never end.
  const answers = temperament === 'friendly' && chance('mood', to, id) < 0.6
  const words = speaksHebrew(to) ? HEBREW_ANSWERS : ENGLISH_ANSWERS
  return { readAfterMs, answer: answers ? { afterMs, text: pick(words, 'words', to, id) } : null }
}

/** Who writes first to an account, and what. */
export function strangerFor(account: Phone, round: number): { phone: Phone; text: string } {
  // 555-01xx is set aside for fiction; the area code is any that exists.
  const digits = Math.floor(chance('stranger', account, String(round)) * 100)
  const phone = `1${pick(AREAS, 'area', account, String(round))}55501${String(digits).padStart(2, '0')}`
  const words = speaksHebrew(phone) ? HEBREW_OPENINGS : ENGLISH_OPENINGS
  return { phone, text: pick(words, 'opening', account, String(round)) }
}

/** Brings them to life. Answers the way to put an end to it. */
export function startPeople(whatsapp: WhatsApp, options: PeopleOptions = {}): () => void {
  const { timers = REAL_TIMERS, strangerEveryMs = STRANGER_EVERY_MS, log = () => undefined } = options
  const waiting = new Set<() => void>()

  function later(ms: number, act: () => unknown): void {
    const cancel = timers.after(ms, () => {
      waiting.delete(cancel)
      Promise.resolve()
        .then(act)
        .catch((error: unknown) => log(`people: ${error instanceof Error ? error.message : 'failed'}`))
    })
    waiting.add(cancel)
  }

  function react(message: ShownMessage): void {
    const { from, to, id } = message
    // A number with a linked device is run by its own program, not by us.
    if (whatsapp.accounts().some(({ phone, linked }) => phone === to && linked)) return
    const { readAfterMs, answer } = reactionTo(message)
    if (readAfterMs !== null) later(readAfterMs, () => whatsapp.read(to, from, id))
    if (answer !== null) later(answer.afterMs, () => whatsapp.sendFrom(to, from, answer.text))
  }

  async function visit(round: number): Promise<void> {
    later(strangerEveryMs, () => visit(round + 1))
    for (const { phone, online } of whatsapp.accounts()) {
      const stranger = strangerFor(phone, round)
      if (online && stranger.phone !== phone) await whatsapp.sendFrom(stranger.phone, phone, stranger.text)
    }
  }

  const stopListening = whatsapp.onShown(react)
  later(strangerEveryMs, () => visit(1))
  return () => {
    stopListening()
    for (const cancel of waiting) cancel()
    waiting.clear()
  }
}

function speaksHebrew(phone: Phone): boolean {
  return chance('language', phone) < (phone.startsWith('972') ? 0.75 : 0.25)
}

/** Between 0 and 1, always the same for the same words. */
function chance(...words: readonly string[]): number {
  return createHash('sha256').update(words.join('\n')).digest().readUInt32BE(0) / 2 ** 32
}

function between(low: number, high: number, draw: number): number {
  return Math.round(low + (high - low) * draw)
}

function pick(choices: readonly string[], ...words: readonly string[]): string {
  return choices[Math.floor(chance(...words) * choices.length)] ?? ''
}
