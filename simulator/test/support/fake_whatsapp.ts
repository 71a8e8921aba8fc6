/** The `WhatsApp` interface without a network: remembers what was asked of it. For tests of what stands around it. */
import {
  type AccountView,
  type Fault,
  type FaultView,
  Refused,
  type ShownMessage,
  type WhatsApp
} from '../../src/types.js'

export class FakeWhatsApp implements WhatsApp {
  readonly port = 1
  readonly calls: unknown[][] = []
  readonly list: AccountView[] = []
  readonly #faults: FaultView[] = []
  readonly #listeners = new Set<(message: ShownMessage) => void>()
  closed = false

  show(message: Partial<ShownMessage> & Pick<ShownMessage, 'from' | 'to' | 'id'>): void {
    const whole = { text: 'hello', at: 0, stanzas: 1, delivered: false, read: false, ...message }
    for (const listener of this.#listeners) listener(whole)
  }

  accounts = (): AccountView[] => this.list
  pending = () => []
  faults = (): FaultView[] => this.#faults
  shown = (filter: unknown): ShownMessage[] => this.#note('shown', filter) ?? []
  wire = (filter: unknown) => this.#note('wire', filter) ?? []
  requests = () => ({ 'w:p:get:ping': 2 })
  scan = async (...args: unknown[]): Promise<void> => this.#note('scan', ...args)
  enterCode = async (...args: unknown[]): Promise<void> => this.#note('enterCode', ...args)
  sendFrom = async (...args: unknown[]): Promise<string> => this.#note('sendFrom', ...args) ?? 'AB12'
  read = async (...args: unknown[]): Promise<number> => this.#note('read', ...args) ?? 1
  setAbsent = (...args: unknown[]): void => this.#note('setAbsent', ...args)
  behave = (...args: unknown[]): void => this.#note('behave', ...args)
  ban = (...args: unknown[]): void => this.#note('ban', ...args)
  unban = (...args: unknown[]): void => this.#note('unban', ...args)
  logOut = (...args: unknown[]): void => this.#note('logOut', ...args)
  replace = (...args: unknown[]): void => this.#note('replace', ...args)
  drop = (phone: string): void => {
    throw new Refused(`${phone} is not linked: scan its QR code first`)
  }
  streamError = (...args: unknown[]): void => this.#note('streamError', ...args)

  addFault(fault: Fault): FaultView {
    const view = { ...fault, id: this.#faults.length + 1, hits: 0 }
    this.#faults.push(view)
    return view
  }

  removeFault(id: number): boolean {
    const index = this.#faults.findIndex(fault => fault.id === id)
    if (index >= 0) this.#faults.splice(index, 1)
    return index >= 0
  }

  onShown(listener: (message: ShownMessage) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async close(): Promise<void> {
    this.closed = true
  }

  #note(name: string, ...args: unknown[]): undefined {
    this.calls.push([name, ...args])
    return undefined
  }
}

export function account(phone: string, state: Partial<AccountView> = {}): AccountView {
  const rest = { lid: '1@lid', name: 'A', banned: false, logins: 1, waiting: 0, deviceName: 'Chrome' }
  return { phone, online: true, linked: true, ...rest, ...state }
}
