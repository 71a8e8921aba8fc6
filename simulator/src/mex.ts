/** The few GraphQL questions (`w:mex`) clients ask about restrictions of their account. */

import { type BinaryNode, node, QueryIds } from './codec.js'
import type { AccountRecord } from './records.js'

export function answerMex(query: BinaryNode | undefined, account: AccountRecord, now: number): BinaryNode[] {
  const data = dataFor(query?.attrs['query_id'], account, now)
  return [node('result', {}, Buffer.from(JSON.stringify({ data })))]
}

function dataFor(query: string | undefined, account: AccountRecord, now: number): unknown {
  if (query === QueryIds.REACHOUT_TIMELOCK) {
    const active = account.timelockUntil > now
    return {
      xwa2_fetch_account_reachout_timelock: {
        is_active: active,
        time_enforcement_ends: active ? String(Math.ceil(account.timelockUntil / 1000)) : '0',
        enforcement_type: 'DEFAULT'
      }
    }
  }
  if (query === QueryIds.MESSAGE_CAPPING_INFO) {
    return { xwa2_message_capping_info: { total_quota: -1, used_quota: 0, capping_status: 'NONE' } }
  }
  return {}
}
