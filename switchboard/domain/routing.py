"""Which account sends a message that names none: who wrote before, else who can bear the most."""

from collections.abc import Sequence

from switchboard.domain.accounts import Account
from switchboard.domain.pacing import Policy, spare


def choose(policy: Policy, known: str | None, candidates: Sequence[Account], now: int) -> str | None:
    """The phone to send from, or None while no connected account has allowance left.

    `known` is the account that wrote to this recipient before. It is kept even while it is offline or
    restricted: a person who knows one number is not suddenly written to by another.
    """
    if known is not None:
        return known
    able = [account for account in candidates if account.connected and spare(policy, account, now) > 0]
    best = max(able, key=lambda account: (spare(policy, account, now), account.profile.phone), default=None)
    return best.profile.phone if best else None
