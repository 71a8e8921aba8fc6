"""When the last message of a batch leaves: of one that is only thought of, and of one that is under way."""

from switchboard.domain.accounts import Account
from switchboard.domain.day_plan import finish
from switchboard.domain.errors import SessionNotFound
from switchboard.domain.pacing import Policy
from switchboard.store import Store
from switchboard.store.batches import Batch
from switchboard.web.times import iso


async def planned_end(store: Store, policy: Policy, session: str, count: int, spread_ms: int, now: int) -> str | None:
    """If it were sent now from this session; None while nobody can know."""
    account = (await store.accounts.look(session=session, now=now)).account
    return _end(policy, account, account.waiting + count, now + _last_due(spread_ms, count), now)


async def expected_end(store: Store, policy: Policy, batch: Batch, now: int) -> str | None:
    """None while nobody can know, and once nothing of it waits."""
    if batch.account is None or batch.waiting <= 0:
        return None
    try:
        account = (await store.accounts.look(phone=batch.account, now=now)).account
    except SessionNotFound:
        return None  # its number was deleted since
    # Those that are due are in the account's queue, unless they are just about to be put there, or found no room.
    not_due = min(batch.waiting, batch.total - _due(batch, now))
    ahead = max(account.waiting + not_due, batch.waiting)
    return _end(policy, account, ahead, batch.created_at + _last_due(batch.spread_ms, batch.total), now)


def _end(policy: Policy, account: Account, ahead: int, last_due: int, now: int) -> str | None:
    at = finish(policy, account, max(1, ahead), now).at
    return None if at is None else iso(max(at, last_due), account.profile.zone)


def _last_due(spread_ms: int, count: int) -> int:
    return spread_ms * (count - 1) // count if count else 0


def _due(batch: Batch, now: int) -> int:
    """How many of its rows are due by now."""
    if batch.spread_ms <= 0:
        return batch.total
    return min(batch.total, int((now - batch.created_at) * batch.total // batch.spread_ms) + 1)
