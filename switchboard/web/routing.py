"""Words that routes of several parts share: path and query parameters, the errors any route may give."""

from typing import Annotated, Any

from fastapi import Header, Query
from pydantic import AfterValidator

from switchboard.domain import errors
from switchboard.domain.ids import is_session_id


def _session_id(text: str) -> str:
    if not is_session_id(text):
        raise errors.SessionNotFound(text)
    return text


# A name that can't be one is not found, and never reaches the store, where it might mean something else.
SessionId = Annotated[str, AfterValidator(_session_id)]
IdempotencyKey = Annotated[str | None, Header(alias="Idempotency-Key")]
Limit = Annotated[int, Query(ge=1, le=200)]

ALWAYS = (errors.Unauthorized, errors.Forbidden, errors.RateLimited, errors.StoreUnavailable)
SECURITY: dict[str, Any] = {"security": [{"apiKey": []}, {"bearer": []}]}
