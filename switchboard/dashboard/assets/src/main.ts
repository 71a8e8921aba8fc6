/** Everything that the pages do by themselves. Each part looks for what it is for, and rests where there is none. */

import { startCharacters } from './characters.js'
import { startChips } from './chips.js'
import { startCopy } from './copy.js'
import { startDialogs } from './dialogs.js'
import { startFaults } from './faults.js'
import { startFilter } from './filter.js'
import { startLive } from './live.js'
import { startLog } from './log.js'
import { startMorph } from './morph.js'
import { startNav } from './nav.js'
import { startPlots } from './plots.js'
import { startSelect } from './select.js'
import { startSignedOut } from './signed_out.js'
import { startTheme } from './theme.js'
import { startTimes } from './times.js'
import { startToasts } from './toasts.js'
import { startUpload } from './upload.js'

startMorph()
startTheme()
startNav()
startDialogs()
startToasts()
startSignedOut()
startTimes()
startCopy()
startSelect()
startFaults()
startFilter()
startUpload()
startChips()
startCharacters()
startPlots()
startLog()
startLive()
