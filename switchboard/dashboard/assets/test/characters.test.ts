import assert from 'node:assert/strict'
import { test } from 'node:test'
import { charactersLeft } from '../src/characters.js'

test('characters are counted as people and the server do, and may be too many', () => {
  assert.equal(charactersLeft('', 10), 10)
  assert.equal(charactersLeft('שלום👋', 10), 5)
  assert.equal(charactersLeft('12345', 3), -2)
})
