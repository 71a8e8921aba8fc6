"""What was given up, or may have arrived: a person tries it again, or lets it go; one by one or many at once."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Request, Response

from switchboard.dashboard.access.caller import dashboard_caller
from switchboard.dashboard.access.gate import Gate
from switchboard.dashboard.rendering import Pages
from switchboard.dashboard.services import Services
from switchboard.domain.errors import InvalidRequest, NotFound, Refused, SwitchboardError
from switchboard.gateway.routes import Cursor, MessageId
from switchboard.web.auth import Caller

_PER_PAGE = 50
_AT_ONCE = 200

Ids = Annotated[list[MessageId], Form(alias="id", max_length=_AT_ONCE)]
Deed = Callable[[Caller, str], Awaitable[dict[str, object]]]


def dead_letter_pages(gate: Gate, pages: Pages, services: Services) -> APIRouter:
    router = APIRouter(route_class=gate.route(), include_in_schema=False)

    @router.get("/dead-letters")
    async def dead_letters(request: Request, cursor: Cursor = None) -> Response:
        found = await services.reading.dead_letters(_PER_PAGE, cursor, newest_first=True)
        return pages.show(
            request,
            "dead_letters.html",
            messages=found["items"],
            total=await services.store.messages.dead(),
            first="/dead-letters" if cursor else "",
            more="/dead-letters?" + urlencode({"cursor": found["nextCursor"]}) if found["nextCursor"] else "",
        )

    @router.post("/dead-letters/retry")
    async def retry(request: Request, ids: Ids = []) -> Response:  # noqa: B006 - FastAPI makes a new one each time
        return await decide(request, services.changing.redrive, ids, "dead_letters.retried")

    @router.post("/dead-letters/discard")
    async def discard(request: Request, ids: Ids = []) -> Response:  # noqa: B006
        return await decide(request, services.changing.discard, ids, "dead_letters.discarded")

    async def decide(request: Request, deed: Deed, ids: Sequence[str], key: str) -> Response:
        texts = pages.texts(request)
        if not ids:
            raise InvalidRequest(texts("dead_letters.none_chosen"), "id")
        done, refused = await each(deed, ids)
        if not refused:
            return pages.done(request, key, n=done)
        if not done and len({type(error) for error in refused}) == 1:
            raise refused[0]
        why = Counter(pages.explain(request, error) for error in refused)
        reasons = " ".join(texts("dead_letters.refused_part", n=count, why=reason) for reason, count in why.items())
        if not done:
            raise InvalidRequest(texts("dead_letters.none_done", why=reasons))
        return pages.done(request, key + "_some", n=done, why=reasons)

    return router


async def each(deed: Deed, ids: Sequence[str]) -> tuple[int, list[SwitchboardError]]:
    """How many it was done with, and why not with the others. A store that is away ends it at once."""
    done = 0
    refused: list[SwitchboardError] = []
    for message_id in dict.fromkeys(ids):
        try:
            await deed(dashboard_caller(), message_id)
        except (Refused, NotFound) as error:
            refused.append(error)
        else:
            done += 1
    return done, refused
