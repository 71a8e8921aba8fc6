/** How the numbers and times of a plot are written in the page's language. */

import type { Plot } from './plot_data.js'

const DAY_S = 86_400
const NONE = '–'

export interface PlotWords {
  /** On the left of the plot. */
  level(value: number): string
  /** Below the plot; `distance` is that between two marks, in seconds. */
  mark(x: number, distance: number): string
  /** Under the pointer. */
  value(value: number | null): string
  when(x: number | null | undefined): string
}

export function plotWords(plot: Plot, language: string, zone?: string): PlotWords {
  const format = (options: Intl.DateTimeFormatOptions) => {
    const formatter = new Intl.DateTimeFormat(language, { ...options, ...(zone && { timeZone: zone }) })
    return (x: number) => formatter.format(x * 1_000)
  }
  const day = format({ day: 'numeric', month: 'short' })
  const time = format({ hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
  const exact = format({ hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' })
  const moment = format({ day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
  const weekday = format({ weekday: 'short', day: 'numeric', month: 'short' })
  const short = new Intl.NumberFormat(language, { notation: 'compact', maximumFractionDigits: 1 })
  const full = new Intl.NumberFormat(language, { maximumFractionDigits: 1 })
  const unit = (text: string) => (plot.unit === '%' ? `${text}%` : plot.unit ? `${text} ${plot.unit}` : text)

  const mark = (x: number, distance: number) => {
    if (plot.xKind === 'hour') return hour(x)
    if (plot.xKind === 'day' || distance >= DAY_S || time(x) === '00:00') return day(x)
    return distance < 60 ? exact(x) : time(x)
  }
  const when = { hour, day: weekday, time: moment }[plot.xKind]
  return {
    level: value => (plot.unit === '%' ? unit(short.format(value)) : short.format(value)),
    mark,
    value: value => (value === null || value === undefined ? NONE : unit(full.format(value))),
    when: x => (x === null || x === undefined ? NONE : when(x))
  }
}

function hour(x: number): string {
  return `${String(x).padStart(2, '0')}:00`
}
