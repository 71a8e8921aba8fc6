/** What the classic script before the modules leaves behind. */

import type { Idiomorph as Morph } from 'idiomorph'

declare global {
  const Idiomorph: typeof Morph
}
