/**
 * Draws `<figure data-plot>` from the JSON in it, and again when the figures, the width or the colours change. The
 * drawing stays where only figures changed: it stands in an element of its own, which `morph.ts` leaves alone.
 */

import type uPlot from 'uplot'
import { language, onContent, timeZone } from './page.js'
import { columns, type Plot, shapeOf } from './plot_data.js'
import { type Ink, plotOptions, type Size, WHEN } from './plot_options.js'
import { plotWords } from './plot_words.js'

/** Not beside ours in the source: the build puts it there. */
const UPLOT: string = '../vendor/uplot.js'
/** A name that the server never writes: nothing of its own is taken for the drawing. */
export const HOLDER = 'plot-canvas'
const HEIGHT_PX = 220

interface Drawing {
  plot: Plot
  text: string
  readonly chart: uPlot
  readonly holder: HTMLElement
}

class Plots {
  readonly #draw: typeof uPlot
  readonly #drawings = new Map<HTMLElement, Drawing>()
  readonly #widths = new ResizeObserver(entries => {
    for (const { target } of entries) this.#resize(target)
  })

  constructor(draw: typeof uPlot) {
    this.#draw = draw
  }

  drawAll(): void {
    for (const [figure, { holder }] of this.#drawings) if (!holder.isConnected) this.#drop(figure)
    for (const figure of document.querySelectorAll<HTMLElement>('figure[data-plot]')) this.#drawOne(figure)
  }

  redrawAll(): void {
    for (const figure of [...this.#drawings.keys()]) this.#drop(figure)
    this.drawAll()
  }

  #drawOne(figure: HTMLElement): void {
    const text = figure.querySelector(':scope > script[type="application/json"]')?.textContent ?? ''
    const old = this.#drawings.get(figure)
    if (!text || old?.text === text) return
    const plot = JSON.parse(text) as Plot
    if (old && shapeOf(old.plot) === shapeOf(plot)) {
      Object.assign(old, { plot, text })
      old.chart.setData(columns(plot))
      return
    }
    this.#drop(figure)
    this.#drawNew(figure, plot, text)
  }

  #drawNew(figure: HTMLElement, plot: Plot, text: string): void {
    const holder = newHolder()
    // Its table comes after it.
    figure.insertBefore(holder, figure.querySelector(':scope > details'))
    const current = () => this.#drawings.get(figure)?.plot ?? plot
    const zone = plot.zone ?? timeZone()
    const kit = { draw: this.#draw, words: plotWords(plot, language(), zone), ink: inkOf(holder), zone }
    const chart = new this.#draw(plotOptions(kit, current, sizeOf(figure, holder)), columns(plot), holder)
    describe(chart, figure)
    this.#drawings.set(figure, { plot, text, chart, holder })
    this.#widths.observe(holder)
  }

  #drop(figure: HTMLElement): void {
    const drawing = this.#drawings.get(figure)
    if (!drawing) return
    this.#drawings.delete(figure)
    this.#widths.unobserve(drawing.holder)
    drawing.chart.destroy()
    drawing.holder.remove()
  }

  #resize(holder: Element): void {
    for (const [figure, drawing] of this.#drawings) {
      if (drawing.holder !== holder || holder.clientWidth === 0 || holder.clientWidth === drawing.chart.width) continue
      drawing.chart.setSize(sizeOf(figure, drawing.holder))
    }
  }
}

export function startPlots(): void {
  let plots: Promise<Plots> | undefined
  onContent(() => {
    // Pages without a plot don't fetch the library.
    if (document.querySelector('[data-plot]')) plots ??= loadPlots()
    void plots?.then(loaded => loaded.drawAll())
  })
}

async function loadPlots(): Promise<Plots> {
  const { default: draw } = (await import(UPLOT)) as { default: typeof uPlot }
  const plots = new Plots(draw)
  const redraw = () => plots.redrawAll()
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw)
  new MutationObserver(redraw).observe(document.documentElement, { attributeFilter: ['data-theme'] })
  void document.fonts.ready.then(redraw)
  return plots
}

/** As wide as its figure lets it be, whatever is drawn in it; time goes from left to right in every language. */
function newHolder(): HTMLElement {
  const holder = document.createElement(HOLDER)
  holder.className = HOLDER
  holder.dir = 'ltr'
  Object.assign(holder.style, { display: 'block', contain: 'inline-size' })
  return holder
}

function sizeOf(figure: HTMLElement, holder: HTMLElement): Size {
  return { width: Math.max(holder.clientWidth, 120), height: Number(figure.dataset['height']) || HEIGHT_PX }
}

/** The browser resolves what the style sheet says (variables, mixtures, light and dark) into one colour. */
function inkOf(holder: HTMLElement): Ink {
  const colour = (property: string, percent = 100) => {
    const probe = document.createElement('span')
    probe.style.color = `color-mix(in srgb, var(${property}, currentcolor) ${percent}%, transparent)`
    holder.append(probe)
    const resolved = getComputedStyle(probe).color
    probe.remove()
    return resolved
  }
  return { colour, font: `12px ${getComputedStyle(holder).fontFamily}` }
}

/** Screen readers read the table that the server wrote beside it. */
function describe(chart: uPlot, figure: HTMLElement): void {
  const canvas = chart.ctx.canvas
  canvas.setAttribute('role', 'img')
  canvas.setAttribute('aria-label', figure.dataset['label'] ?? '')
  const legend = chart.root.querySelector<HTMLElement>('.u-legend')
  legend?.setAttribute('aria-hidden', 'true')
  if (legend) legend.dir = document.documentElement.dir
  // The time under the pointer needs no name before it.
  const when = legend?.querySelector<HTMLElement>(`.${WHEN} th`)
  if (when) when.style.display = 'none'
}
