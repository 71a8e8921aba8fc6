/** The worker protocol's schemas and examples, for tests on this side of the border. */

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'

const BASE = 'https://switchboard.invalid/protocol/schemas/'

export type SchemaName =
  | 'ack.request'
  | 'claim.request'
  | 'claim.response'
  | 'error'
  | 'event'
  | 'nack.request'
  | 'settle.response'

export interface Example {
  readonly schema: SchemaName
  /** What comes after the schema in the file's name. */
  readonly case: string
  readonly document: Record<string, unknown>
}

export class Protocol {
  readonly #folder = protocolFolder()
  readonly #ajv = new Ajv2020({ strict: true, strictRequired: false, strictTypes: false, allErrors: true })

  constructor() {
    for (const file of ['shared/types.json', ...this.#files('schemas')]) {
      this.#ajv.addSchema(this.#read(`schemas/${file}`))
    }
  }

  /** What is wrong with a document, in words; empty if nothing is. */
  faults(schema: SchemaName, document: unknown): string[] {
    const check: ValidateFunction | undefined = this.#ajv.getSchema(`${BASE}${schema}.json`)
    if (!check) throw new Error(`there is no schema ${schema}`)
    return check(document) ? [] : (check.errors ?? []).map(error => `${schema} ${error.instancePath} ${error.message}`)
  }

  examples(schema: SchemaName): Example[] {
    return this.#files('examples')
      .filter(file => file.startsWith(`${schema}.`))
      .map(file => ({
        schema,
        case: file.slice(schema.length + 1, -'.json'.length),
        document: this.#read(`examples/${file}`)
      }))
  }

  example(schema: SchemaName, name: string): Record<string, unknown> {
    return this.#read(`examples/${schema}.${name}.json`)
  }

  invalidExamples(schema: SchemaName): { case: string; wrong: string; document: unknown }[] {
    return this.#files('examples/invalid')
      .filter(file => file.startsWith(`${schema}.`))
      .map(file => {
        const { wrong, document } = this.#read(`examples/invalid/${file}`)
        return { case: file, wrong: String(wrong), document }
      })
  }

  signatureExample(): { secret: string; id: string; timestamp: number; body: string; signature: string } {
    return JSON.parse(readFileSync(join(this.#folder, 'examples/signature.json'), 'utf8'))
  }

  #files(folder: string): string[] {
    return readdirSync(join(this.#folder, folder)).filter(name => name.endsWith('.json'))
  }

  #read(file: string): Record<string, unknown> {
    return JSON.parse(readFileSync(join(this.#folder, file), 'utf8'))
  }
}

/** Tests run from the repository or one of its packages, and their compiled form lies anywhere. */
function protocolFolder(): string {
  for (let folder = process.cwd(); ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'protocol/schemas'))) return join(folder, 'protocol')
    if (folder === dirname(folder)) throw new Error('run the tests from within the repository: protocol/ is needed')
  }
}
