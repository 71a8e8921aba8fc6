"""Links for the phone's owner: whoever has one may see the code of one session, until it is scanned or too old."""

from dataclasses import dataclass

from switchboard.dashboard.access.signing import Signer
from switchboard.domain.clock import Clock
from switchboard.domain.errors import ScanLinkExpired, ScanLinkInvalid
from switchboard.domain.sessions import Session

_PURPOSE = "scan"


@dataclass(frozen=True, slots=True)
class ScanLink:
    token: str
    expires_at: int


@dataclass(frozen=True, slots=True)
class ScanClaim:
    """What a token says: for which session (a later one of that name is another one), from when to when."""

    session_id: str
    created_at: int
    issued_at: int
    expires_at: int


class ScanLinks:
    def __init__(self, signer: Signer, clock: Clock, lifetime_ms: int) -> None:
        self._signer = signer
        self._clock = clock
        self._lifetime_ms = lifetime_ms

    def make(self, session: Session) -> ScanLink:
        now = self._clock()
        expires_at = now + self._lifetime_ms
        value = f"{session.created_at}.{now}.{expires_at}.{session.id}"
        return ScanLink(self._signer.sign(_PURPOSE, value), expires_at)

    def read(self, token: str) -> ScanClaim:
        """What it claims, if it is ours and still counts by its time. Ask `still_good` about the session, too."""
        value = self._signer.open(_PURPOSE, token)
        if value is None:
            raise ScanLinkInvalid
        created_at, issued_at, expires_at, session_id = value.split(".", 3)
        claim = ScanClaim(session_id, int(created_at), int(issued_at), int(expires_at))
        if self._clock() >= claim.expires_at:
            raise ScanLinkExpired
        return claim


def still_good(claim: ScanClaim, session: Session) -> bool:
    """It is about this very session, which was not linked since: a link is used up by the scan it was made for."""
    same = session.id == claim.session_id and session.created_at == claim.created_at
    return same and (session.connected_at is None or session.connected_at < claim.issued_at)
