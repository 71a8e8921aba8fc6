"""The form of a new API key: what was typed, and what is wrong with it, by field."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from switchboard.domain.ids import is_session_id
from switchboard.store.api_keys import SCOPES

MAX_NAME = 60
MAX_RATE = 1_000_000


@dataclass(frozen=True, slots=True)
class NewKey:
    name: str
    scopes: Sequence[str]
    sessions: Sequence[str]
    rate: str

    def faults(self, known: Collection[str]) -> Mapping[str, str]:
        """Field by field, the key of the text that says it."""
        wrong = {
            "name": not self.name or len(self.name) > MAX_NAME or not self.name.isprintable(),
            "scopes": not self.scopes or not set(self.scopes) <= set(SCOPES),
            "sessions": not all(is_session_id(session) and session in known for session in self.sessions),
            "rate": not (self.rate.isascii() and self.rate.isdigit() and 1 <= int(self.rate) <= MAX_RATE),
        }
        return {field: f"settings.fault_{field}" for field, is_wrong in wrong.items() if is_wrong}


def read(name: str, scopes: Sequence[str], sessions: str, rate: str) -> NewKey:
    """Sessions are written as people do: with commas, spaces or both between them."""
    return NewKey(name.strip(), scopes, tuple(sessions.replace(",", " ").split()), rate.strip())
