"""The sessions to choose a sender from: those that can send now first."""

from dataclasses import dataclass

from switchboard.dashboard.services import Services
from switchboard.domain.ids import natural
from switchboard.domain.sessions import State

MOST_LISTED = 200
"""A longer list is no list any more: then a name is typed, and the browser completes it."""
_MOST_SUGGESTED = 1_000


@dataclass(frozen=True, slots=True)
class Senders:
    chosen: str
    sessions: list[dict[str, object]]
    lacks_proxy: bool = False
    """There is nobody to choose, and nothing to link a number through."""

    @property
    def typed(self) -> bool:
        return len(self.sessions) > MOST_LISTED

    @property
    def has_chosen(self) -> bool:
        """If not, it is offered all the same: sending says what is wrong, and nothing goes out from another number."""
        return any(one["sessionId"] == self.chosen for one in self.sessions)


async def senders(services: Services, chosen: str = "") -> Senders:
    ids = sorted(await services.store.sessions.ids(), key=natural)
    shown = await services.views.show(ids[:_MOST_SUGGESTED])
    linked = [one for one in shown if one["phone"] and one["status"] != State.LOGGED_OUT.value]
    if not linked:
        pool = await services.proxy_views.inventory()
        return Senders(chosen, [], lacks_proxy=not pool["proxies"] and not services.allow_direct)
    return Senders(chosen, sorted(linked, key=lambda one: one["status"] != State.CONNECTED.value))
