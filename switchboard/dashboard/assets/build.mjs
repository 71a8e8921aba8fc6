/**
 * Puts together what browsers fetch, in ../static: the libraries of package.json, fonts, style sheets and everyone's
 * licence. tsc then writes our own modules beside them. Nothing of it is committed.
 */

import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const HERE = dirname(fileURLToPath(import.meta.url))
const STATIC = join(HERE, '..', 'static')
const VENDOR = join(STATIC, 'vendor')
const FONT = '@fontsource-variable/heebo'
const SUBSETS = ['latin', 'latin-ext', 'hebrew']

const require = createRequire(import.meta.url)
const { dependencies } = JSON.parse(readFileSync(join(HERE, 'package.json'), 'utf8'))

/** Looked for upwards, as Node does: npm may have put a package into any of the folders. */
function folderOf(name) {
  const found = require.resolve
    .paths(name)
    .map(path => join(path, name))
    .find(path => existsSync(join(path, 'package.json')))
  if (!found) throw new Error(`${name} is not installed: run \`make node\``)
  return found
}

function read(name, path) {
  return readFileSync(join(folderOf(name), path), 'utf8')
}

function write(path, text) {
  writeFileSync(join(STATIC, path), text)
}

function copyLibraries() {
  write('vendor/htmx.js', read('htmx.org', 'dist/htmx.min.js'))
  write('vendor/idiomorph-ext.js', read('idiomorph', 'dist/idiomorph-ext.min.js'))
  // The package has it small or as a module, not both.
  write('vendor/uplot.js', `${read('uplot', 'dist/uPlot.iife.min.js')}\nexport default uPlot\n`)
  write('vendor/uplot.css', read('uplot', 'dist/uPlot.min.css'))
}

function copyFonts() {
  const faces = read(FONT, 'index.css').matchAll(/@font-face\s*{[^}]*}/g)
  const chosen = [...faces].map(([face]) => face).filter(face => SUBSETS.some(subset => face.includes(fileOf(subset))))
  if (chosen.length !== SUBSETS.length) throw new Error(`${FONT} has other faces than ${SUBSETS.join(', ')}`)
  mkdirSync(join(VENDOR, 'fonts'))
  for (const subset of SUBSETS)
    cpSync(join(folderOf(FONT), 'files', fileOf(subset)), join(VENDOR, 'fonts', fileOf(subset)))
  write('vendor/fonts.css', `${chosen.join('\n\n').replaceAll('./files/', './fonts/')}\n`)
}

function fileOf(subset) {
  return `heebo-${subset}-wght-normal.woff2`
}

function copyLicences() {
  const parts = Object.keys(dependencies).map(
    name => `${name} ${dependencies[name]}\n\n${read(name, 'LICENSE').trim()}\n`
  )
  write('LICENSES.txt', parts.join(`\n${'-'.repeat(80)}\n\n`))
}

rmSync(STATIC, { recursive: true, force: true })
mkdirSync(VENDOR, { recursive: true })
copyLibraries()
copyFonts()
copyLicences()
cpSync(join(HERE, 'css'), join(STATIC, 'css'), { recursive: true })
