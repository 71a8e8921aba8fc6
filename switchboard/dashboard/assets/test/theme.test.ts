import assert from 'node:assert/strict'
import { test } from 'node:test'
import { themeAfter } from '../src/theme.js'

test('the switch goes from the system to light to dark and round again', () => {
  assert.equal(themeAfter('system'), 'light')
  assert.equal(themeAfter('light'), 'dark')
  assert.equal(themeAfter('dark'), 'system')
})
