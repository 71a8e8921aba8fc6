/** The server's own refusal of a client's request; becomes `<iq type="error">`. */

export class RequestError extends Error {
  override readonly name = 'RequestError'
  readonly code: number

  constructor(code: number, text: string) {
    super(text)
    this.code = code
  }
}
