/** What can go wrong with the files a worker keeps. The messages name paths and what to do, never a piece of the contents. */
import { dirname } from 'node:path'

/** Disk full, quota reached, file size limit reached. */
const NO_SPACE = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])

/** The disk did not take or give something. */
export class StorageError extends Error {
  override readonly name = 'StorageError'
  readonly isFull: boolean

  private constructor(folder: string, code: string) {
    const isFull = NO_SPACE.has(code)
    super(
      isFull
        ? `no space left to write in ${folder}: free some space`
        : `cannot use the files in ${folder} (${code}): check the disk and the folder's permissions`
    )
    this.isFull = isFull
  }

  /** Turns a system error into one that says what to do; leaves all others as they are. */
  static from(error: unknown, path: string): Error {
    const code = error instanceof Error && 'syscall' in error && 'code' in error ? error.code : null
    if (typeof code === 'string') return new StorageError(dirname(path), code)
    return error instanceof Error ? error : new Error(String(error))
  }
}

/** Something that had been safely on the disk can't be read any more. */
export class DamagedFile extends Error {
  override readonly name = 'DamagedFile'
  /** Where the damaged file is kept, if it was moved away. */
  readonly keptAs: string | null

  constructor(path: string, at: number, keptAs: string | null) {
    const advice = keptAs
      ? `it is kept as ${keptAs}; restore a backup, or restart to begin with an empty one`
      : 'check the disk and restart'
    super(`${path} is damaged at byte ${at}: ${advice}`)
    this.keptAs = keptAs
  }
}
