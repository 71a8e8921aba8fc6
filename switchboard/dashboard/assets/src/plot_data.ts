/** The figures of a plot as the server writes them, brought into the shape that is drawn. No drawing here. */

export type PlotKind = 'bars' | 'lines' | 'area' | 'step'
export type XKind = 'time' | 'hour' | 'day'

export interface PlotSeries {
  readonly label: string
  readonly values: readonly (number | null)[]
  /** Names the colour: `--tone-<tone>`. */
  readonly tone: string
  readonly dashed?: boolean
}

export interface Plot {
  readonly kind: PlotKind
  /** Seconds since the epoch, or hours of the day. */
  readonly x: readonly number[]
  readonly xKind: XKind
  readonly series: readonly PlotSeries[]
  readonly unit?: string
  /** What is shown of the time, with figures or without. */
  readonly from?: number
  readonly to?: number
  /** The top of the scale, if it is known. */
  readonly max?: number
  /** The time zone of `x`; else the page's. */
  readonly zone?: string
}

export type Columns = [number[], ...(number | null)[][]]

const STEPS = [1, 2, 3, 4, 6, 7, 12, 14, 24, 28, 48, 96]
const GROUP_SHARE = 0.8

/** Hours, days and bars stand side by side, each as wide as the other; only lines over time keep true distances. */
export function isIndexed(plot: Plot): boolean {
  return plot.kind === 'bars' || plot.xKind !== 'time'
}

/** Among bars, what is dashed is a line to compare them with. */
export function isBar(plot: Plot, series: PlotSeries): boolean {
  return plot.kind === 'bars' && !series.dashed
}

export function columns(plot: Plot): Columns {
  const x = isIndexed(plot) ? plot.x.map((_, index) => index) : [...plot.x]
  return [x, ...plot.series.map(series => plot.x.map((_, index) => series.values[index] ?? null))]
}

/** Two plots of one shape differ in their figures only: the drawing may stay. */
export function shapeOf(plot: Plot): string {
  const { kind, xKind, unit, zone } = plot
  return JSON.stringify([
    kind,
    xKind,
    unit,
    zone,
    isWhole(plot),
    plot.series.map(({ label, tone, dashed }) => [label, tone, dashed])
  ])
}

export function xRange(plot: Plot): [number, number] {
  const count = plot.x.length
  if (plot.kind === 'bars') return [-0.5, Math.max(count, 1) - 0.5]
  if (isIndexed(plot)) return [0, Math.max(count - 1, 1)]
  const first = plot.from ?? plot.x[0] ?? 0
  return [first, Math.max(plot.to ?? plot.x.at(-1) ?? 0, first + 1)]
}

/** From zero, with some air above the highest. */
export function yRange(plot: Plot, highest: number | null): [number, number] {
  return [0, plot.max ?? (highest && highest > 0 ? highest * 1.1 : 1)]
}

/** Which of `count` places get a label when there is room for so many. */
export function labelled(count: number, room: number): number[] {
  const step = STEPS.find(each => count / each <= Math.max(room, 1)) ?? Math.ceil(count / Math.max(room, 1))
  return Array.from({ length: Math.ceil(count / step) }, (_, index) => index * step)
}

/** Where the bars of one series stand, in parts of the width: side by side, as a group around the middle of its place. */
export function barSlots(
  groups: number,
  bars: number,
  index: number,
  widest: number
): { left: number[]; width: number } {
  const width = Math.min(GROUP_SHARE / groups / bars, widest)
  const left = Array.from({ length: groups }, (_, group) => (group + 0.5) / groups + width * (index - bars / 2))
  return { left, width }
}

/** Counts have no halves between their marks. */
export function isWhole(plot: Plot): boolean {
  return plot.series.every(series => series.values.every(value => value === null || Number.isInteger(value)))
}
