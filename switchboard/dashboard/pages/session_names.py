"""Sessions by the names that people gave them: whom a word means, and what each one is called."""

import re
from collections.abc import Callable, Iterable, Mapping

from switchboard.dashboard.services import Services
from switchboard.domain.ids import is_session_id
from switchboard.store.glance import SessionGlance

_PHONE = re.compile(r"[0-9+() .-]+")
_LEAST_DIGITS = 5


async def sessions_meant(services: Services, text: str) -> frozenset[str]:
    """By id, by number or by name, in this order; several may share a name. Never empty for what could be an id:
    a session that was deleted has messages, too.
    """
    word, sessions = text.casefold(), (await services.store.glances.take()).sessions
    if any(one.id == text for one in sessions):
        return frozenset({text})
    for like in (_by_phone(text), lambda one: one.name.casefold() == word, lambda one: word in one.name.casefold()):
        if found := frozenset(one.id for one in sessions if like(one)):
            return found
    return frozenset({text} if is_session_id(text) else ())


async def names_of(services: Services, shown: Iterable[Mapping[str, object]]) -> Mapping[str, str]:
    """Of the sessions that these messages or batches name, as far as they have one."""
    ids = sorted({str(one["sessionId"]) for one in shown if one["sessionId"]})
    return {one.id: one.name for one in await services.store.sessions.get_many(ids) if one.name}


def _by_phone(text: str) -> Callable[[SessionGlance], bool]:
    """However it is written: as on a card, as it is dialled at home or from abroad, or a part of it."""
    digits = re.sub(r"[^0-9]", "", text).removeprefix("00").removeprefix("0") if _PHONE.fullmatch(text) else ""
    return lambda one: len(digits) >= _LEAST_DIGITS and digits in one.phone
