/** What uPlot is told about a plot: scales, axes, series, the legend. Colours come from the style sheet. */

import type uPlot from 'uplot'
import {
  barSlots,
  isBar,
  isIndexed,
  isWhole,
  labelled,
  type Plot,
  type PlotSeries,
  xRange,
  yRange
} from './plot_data.js'
import type { PlotWords } from './plot_words.js'

/** The row of the legend that tells the time. */
export const WHEN = 'plot-when'
const LABEL_PX = 60
const WIDEST_BAR_PX = 36
const SPECK_PX = 8
const IN_PARTS = 2 // uPlot's own number for "in parts of the width"
const WHOLE_STEPS = [1, 2, 5]
  .flatMap(digit => Array.from({ length: 10 }, (_, power) => digit * 10 ** power))
  .sort((a, b) => a - b)

export interface Ink {
  /** A colour as the canvas understands it. */
  colour(property: string, percent?: number): string
  readonly font: string
}

export interface Size {
  readonly width: number
  readonly height: number
}

/** What a plot is drawn with. */
export interface Kit {
  readonly draw: typeof uPlot
  readonly words: PlotWords
  readonly ink: Ink
  readonly zone: string | undefined
}

/** `current` is asked anew at every drawing: only the figures may have changed since. */
export function plotOptions(kit: Kit, current: () => Plot, size: Size): uPlot.Options {
  const { draw, words, ink, zone } = kit
  const plot = current()
  return {
    ...size,
    class: 'plot-drawing',
    padding: [8, plot.kind === 'bars' ? 12 : LABEL_PX / 2, 0, 0], // half of the last label is beside the drawing
    cursor: { y: false, x: plot.kind !== 'bars', drag: { x: false, y: false, setScale: false } },
    legend: {
      live: true,
      markers: { width: 0, fill: (_, index) => ink.colour(`--tone-${plot.series[index - 1]?.tone}`) }
    },
    scales: {
      x: { time: !isIndexed(plot), range: () => xRange(current()) },
      y: { range: (_, __, highest) => yRange(current(), highest) }
    },
    ...(zone && { tzDate: (seconds: number) => draw.tzDate(new Date(seconds * 1_000), zone) }),
    axes: [xAxis(current, words, ink), yAxis(plot, words, ink)],
    series: [
      {
        label: '',
        class: WHEN,
        value: (_, __, ___, index) => (index === null ? '' : words.when(current().x[index]))
      },
      ...plot.series.map(series => seriesOptions(kit, plot, series))
    ]
  }
}

function axisInk(ink: Ink): Pick<uPlot.Axis, 'stroke' | 'font' | 'grid' | 'ticks'> {
  const grid = { stroke: ink.colour('--plot-grid'), width: 1 }
  return { stroke: ink.colour('--plot-text'), font: ink.font, grid, ticks: { show: false } }
}

function xAxis(current: () => Plot, words: PlotWords, ink: Ink): uPlot.Axis {
  const axis = { ...axisInk(ink), space: LABEL_PX, size: 32, gap: 6 }
  if (!isIndexed(current())) {
    return { ...axis, values: (_, marks, __, ___, distance) => marks.map(mark => isolated(words.mark(mark, distance))) }
  }
  return {
    ...axis,
    grid: { show: false },
    splits: plot => labelled(current().x.length, Math.floor(plot.width / LABEL_PX)),
    values: (_, marks) => marks.map(mark => indexedMark(current(), words, mark))
  }
}

function indexedMark(plot: Plot, words: PlotWords, index: number): string {
  const x = plot.x[index]
  return x === undefined ? '' : isolated(words.mark(x, (plot.x[1] ?? x) - (plot.x[0] ?? x)))
}

function yAxis(plot: Plot, words: PlotWords, ink: Ink): uPlot.Axis {
  return {
    ...axisInk(ink),
    space: 36,
    gap: 6,
    size: (_, labels) => 16 + 7 * Math.max(0, ...(labels ?? []).map(label => label.length)),
    values: (_, levels) => levels.map(level => words.level(level)),
    ...(isWhole(plot) && { incrs: WHOLE_STEPS })
  }
}

function seriesOptions(kit: Kit, plot: Plot, series: PlotSeries): uPlot.Series {
  const { draw, words, ink } = kit
  const tone = `--tone-${series.tone}`
  const common = { label: series.label, value: legendValue(words) }
  if (isBar(plot, series)) {
    const fill = ink.colour(tone)
    return { ...common, fill, stroke: fill, width: 0, points: { show: false }, paths: bars(draw, plot, series) }
  }
  return {
    ...common,
    stroke: ink.colour(tone),
    width: 2,
    points: { show: isSpeck },
    ...(series.dashed && { dash: [6, 4] }),
    ...(plot.kind === 'area' && !series.dashed && { fill: ink.colour(tone, 18) }),
    ...(plot.kind === 'step' && { paths: draw.paths.stepped?.({ align: 1 }) ?? noPath })
  }
}

/** So few figures of so long a time that no line of them can be seen: then the points are drawn. */
function isSpeck(chart: uPlot): boolean {
  const x = chart.data[0]
  return chart.valToPos(x.at(-1) ?? 0, 'x') - chart.valToPos(x[0] ?? 0, 'x') < SPECK_PX
}

/** Nothing while nobody points at the drawing. */
function legendValue(words: PlotWords): uPlot.Series.Value {
  return (_, value, __, index) => (index === null ? '' : words.value(value))
}

function bars(draw: typeof uPlot, plot: Plot, series: PlotSeries): uPlot.Series.PathBuilder {
  const beside = plot.series.filter(each => isBar(plot, each))
  const slots = (chart: uPlot) => {
    const widest = WIDEST_BAR_PX / Math.max(chart.bbox.width / draw.pxRatio, 1)
    return barSlots(chart.data[0].length || 1, beside.length, beside.indexOf(series), widest)
  }
  return (
    draw.paths.bars?.({
      radius: 0.15,
      disp: {
        x0: { unit: IN_PARTS, values: chart => slots(chart).left },
        size: { unit: IN_PARTS, values: chart => [slots(chart).width] }
      }
    }) ?? noPath
  )
}

/** On a canvas, a text takes its direction from the page around it unless it says where it begins and ends. */
function isolated(text: string): string {
  return `\u2068${text}\u2069`
}

const noPath = () => null
