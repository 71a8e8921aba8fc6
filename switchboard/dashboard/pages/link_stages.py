"""How far the linking of a phone is: what the two pages that show its code go by."""

from dataclasses import dataclass
from enum import StrEnum

from switchboard.dashboard.services import Services
from switchboard.domain.errors import QrNotReady
from switchboard.domain.sessions import Code, Session, State, Wanted

_ENDED = {State.LOGGED_OUT, State.FAILED, State.STOPPED, State.PASSKEY_REQUIRED}


class Stage(StrEnum):
    PREPARING = "preparing"  # its worker starts, or asks WhatsApp for a code
    CODE = "code"
    LINKED = "linked"
    AWAY = "away"  # linked, and not connected right now
    ENDED = "ended"  # nothing more happens before it is started again
    LEAVING = "leaving"  # it is being deleted


@dataclass(frozen=True, slots=True)
class Linking:
    """`qr` and `pairing` are there only while they are good."""

    session: Session
    stage: Stage
    qr: Code | None = None
    pairing: Code | None = None

    @property
    def is_new(self) -> bool:
        """No phone was ever linked: there is nothing to keep."""
        return not self.session.linked and self.session.phone is None

    @property
    def is_open(self) -> bool:
        """A phone can be linked now, or in a moment."""
        return self.stage in {Stage.PREPARING, Stage.CODE}


async def linking_of(services: Services, session: Session) -> Linking:
    stage = _stage(session)
    if stage is not Stage.PREPARING:
        return Linking(session, stage)
    pairing = await services.store.sessions.pairing_code(session.id)
    pairing = pairing if pairing and pairing.good_at(services.clock()) else None
    try:
        return Linking(session, Stage.CODE, await services.sessions.qr(session.id), pairing)
    except QrNotReady:
        return Linking(session, stage, None, pairing)


def _stage(session: Session) -> Stage:
    if session.wanted is Wanted.DELETE:
        return Stage.LEAVING
    if session.state is State.CONNECTED:
        return Stage.LINKED
    if session.state in _ENDED:
        return Stage.ENDED
    return Stage.AWAY if session.linked else Stage.PREPARING
