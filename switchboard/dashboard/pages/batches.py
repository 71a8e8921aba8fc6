"""All batches, how far each one is, and taking back what is left of one."""

from fastapi import APIRouter, Request, Response

from switchboard.dashboard.access.caller import dashboard_caller
from switchboard.dashboard.access.gate import Gate
from switchboard.dashboard.pages.session_names import names_of
from switchboard.dashboard.rendering import Pages
from switchboard.dashboard.services import Services
from switchboard.gateway.finishing import expected_end
from switchboard.gateway.list_routes import BatchCursor
from switchboard.gateway.routes import BatchId
from switchboard.store.messages import MessageQuery

_LIMIT = 50
_SHOWN = 20


def batch_pages(gate: Gate, pages: Pages, services: Services) -> APIRouter:
    router = APIRouter(route_class=gate.route(), include_in_schema=False)

    @router.get("/batches")
    async def batches(request: Request, cursor: BatchCursor = None) -> Response:
        found = await services.reading.batches(_LIMIT, cursor)
        following = found["nextCursor"]
        return pages.show(
            request,
            "batches/list.html",
            batches=found["items"],
            names=await names_of(services, found["items"]),
            next_url=f"/batches?cursor={following}" if following else "",
            first_url="/batches" if cursor else "",
        )

    @router.get("/batches/{batch}")
    async def one(request: Request, batch: BatchId) -> Response:
        found, shown = await services.reading.batch(batch)
        ends = await expected_end(services.store, services.policy, found, services.clock())
        messages = (await services.reading.messages(MessageQuery(batch=batch), _SHOWN, None))["items"]
        return pages.show(
            request,
            "batches/one.html",
            batch=shown,
            ends=ends,
            messages=messages,
            names=await names_of(services, [shown, *messages]),
        )

    @router.post("/batches/{batch}/cancel")
    async def cancel(request: Request, batch: BatchId) -> Response:
        shown = await services.changing.cancel_batch(dashboard_caller(), batch)
        return pages.done(request, "batches.cancelled", n=shown["cancelled"])

    return router
