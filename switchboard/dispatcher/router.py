"""Chooses the sender of messages that name none. The choice itself is a rule of the domain."""

from dataclasses import replace

from switchboard.domain.accounts import Account
from switchboard.domain.pacing import Policy
from switchboard.domain.routing import choose
from switchboard.store import Store


async def route_jobs(store: Store, policy: Policy, now: int) -> int:
    """Route what waits for a sender, and say how many found one."""
    jobs, views = await store.pace.jobs(now)
    candidates = {view.account.profile.phone: view.account for view in views}
    choices: list[tuple[str, str]] = []
    for job in jobs:
        phone = choose(policy, job.known, list(candidates.values()), now)
        if phone is None:
            continue
        choices.append((job.message_id, phone))
        if phone in candidates:
            candidates[phone] = _one_more(candidates[phone])
    return await store.pace.route(choices, now) if choices else 0


def _one_more(account: Account) -> Account:
    """The account as it will be, so that one round does not heap everything on a single number."""
    return replace(account, waiting=account.waiting + 1)
