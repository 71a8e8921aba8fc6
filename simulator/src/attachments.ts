/** Files as WhatsApp carries them: encrypted for the media host, the key inside the message. */

import { createCipheriv, createHash, createHmac, randomBytes } from 'node:crypto'
import { hkdf } from './codec.js'

export interface SealedFile {
  readonly bytes: Buffer
  readonly mediaKey: Buffer
  readonly fileSha256: Buffer
  readonly fileEncSha256: Buffer
  readonly fileLength: number
}

/** `purpose` is part of the key: 'Image' or 'History'. */
export function sealFile(plain: Uint8Array, purpose: 'Image' | 'History'): SealedFile {
  const mediaKey = randomBytes(32)
  const keys = Buffer.from(hkdf(mediaKey, 112, { info: `WhatsApp ${purpose} Keys` }))
  const iv = keys.subarray(0, 16)
  const cipher = createCipheriv('aes-256-cbc', keys.subarray(16, 48), iv)
  const body = Buffer.concat([cipher.update(plain), cipher.final()])
  const mac = createHmac('sha256', keys.subarray(48, 80)).update(iv).update(body).digest().subarray(0, 10)
  const bytes = Buffer.concat([body, mac])
  return {
    bytes,
    mediaKey,
    fileSha256: createHash('sha256').update(plain).digest(),
    fileEncSha256: createHash('sha256').update(bytes).digest(),
    fileLength: plain.length
  }
}

export function mimeTypeOf(image: Uint8Array): string {
  if (image[0] === 0x89 && image[1] === 0x50) return 'image/png'
  if (image[0] === 0x52 && image[8] === 0x57) return 'image/webp'
  return 'image/jpeg'
}
