"""The dashboard as a caller of the gateway: a signed-in person may do everything, and uses up no API key's rate."""

from switchboard.store.api_keys import SCOPES, ApiKey
from switchboard.web.auth import Caller

_PER_MINUTE = 6_000
"""More than people press buttons; a script that has a person's cookie still meets a limit."""


def dashboard_caller() -> Caller:
    # No API key has this id: theirs are digests.
    return Caller(ApiKey("dashboard", "Dashboard", frozenset(SCOPES), frozenset(), _PER_MINUTE))
