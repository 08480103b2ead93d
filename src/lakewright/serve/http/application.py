"""The ASGI application of a server: health, metrics, the JSON API."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lakewright.serve.http.access import Guard
from lakewright.serve.http.actions import ACTIONS
from lakewright.serve.http.bus import BUS
from lakewright.serve.http.endpoint import PREFIX, ApiCall, Endpoint, openapi_document
from lakewright.serve.http.events import EVENTS
from lakewright.serve.http.faults import HttpFault, body_of, status_of
from lakewright.serve.http.metrics import Metrics
from lakewright.serve.http.reads import READS
from lakewright.serve.http.site import BegunCommand

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from lakewright.serve.http.site import MakePages, Site, SitePages


log = logging.getLogger(__name__)

ENDPOINTS: tuple[Endpoint, ...] = (*READS, *ACTIONS, *BUS, *EVENTS)

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


def make_application(site: Site, make_pages: MakePages | None = None) -> ASGIApp:
    """Return the application that answers for a site, with pages for people if there are any."""
    pages = None if make_pages is None else make_pages(site)
    document = openapi_document(ENDPOINTS)
    metrics = Metrics(site)

    async def openapi(_: Request) -> Response:
        return JSONResponse(document)

    async def scrape(_: Request) -> Response:
        return Response(await run_in_threadpool(metrics.text), media_type=PROMETHEUS)

    routes = [
        Route("/healthz", _health),
        Route("/readyz", _readiness(site)),
        Route("/metrics", scrape),
        Route(f"{PREFIX}/openapi.json", openapi),
        *(
            Route(f"{PREFIX}{each.path}", _Answers(site, each).answer, methods=[each.method])
            for each in ENDPOINTS
        ),
        *(pages.routes() if pages is not None else ()),
    ]
    inner = Starlette(routes=routes, exception_handlers={HTTPException: _missing(pages)})
    return Guard(inner, site.access, None if pages is None else pages.error_page)


async def _health(_: Request) -> Response:
    return JSONResponse({"status": "ok"})


def _readiness(site: Site) -> Callable[[Request], Any]:
    def ask() -> None:
        site.app().store.document("run", "")

    async def readiness(_: Request) -> Response:
        try:
            await run_in_threadpool(ask)
        except Exception as error:  # whatever it is, nothing works
            log.warning("not ready: %s", error)
            # The cause is for those who may ask: it names places.
            return JSONResponse({"status": "not ready"}, 503)
        return JSONResponse({"status": "ready"})

    return readiness


class _Answers:
    """Answers the requests to one endpoint of the API."""

    def __init__(self, site: Site, endpoint: Endpoint) -> None:
        self.site = site
        self.endpoint = endpoint

    async def answer(self, request: Request) -> Response:
        """Return the answer to a request."""
        try:
            body = _body_of(await request.body()) if self.endpoint.method != "GET" else {}
            return await run_in_threadpool(self._answer, request, body)
        except Exception as error:  # every error becomes a body with a code
            return self._failed(error)

    def _answer(self, request: Request, body: Mapping[str, Any]) -> Response:
        endpoint = self.endpoint
        if endpoint.changes:
            self.site.access.check_actions()
        query = {name: request.query_params.getlist(name) for name in request.query_params}
        base_url = str(request.base_url).rstrip("/")
        call = ApiCall(self.site, self.site.app(), request.scope["asker"], base_url)
        found = endpoint.handle(call, **request.path_params, **endpoint.arguments(query, body))
        found = found.as_json() if isinstance(found, BegunCommand) else found
        if isinstance(found, Response):
            return found
        found = call.app.redactor.value(found)
        if endpoint.form is not None:
            found = {"schema": endpoint.form, **found}
        return _Json(found, endpoint.status)

    def _failed(self, error: Exception) -> Response:
        status = status_of(error)
        if status == 500:
            log.error("a request failed", exc_info=error)
        extra = {"retry-after": "5"} if status in (429, 503) else {}
        return _Json(self.site.redactor().value(body_of(error)), status, extra)


class _Json(JSONResponse):
    """A JSON document whose values may be anything that has a text."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, ensure_ascii=False, allow_nan=False, default=str).encode()


def _body_of(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise HttpFault(400, "usage", f"the body is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise HttpFault(400, "usage", "the body is not a JSON object")
    return found


def _missing(pages: SitePages | None) -> Callable[[Request, Exception], Any]:
    """Return what answers requests for a path that there is not, or not with this method."""

    async def answer(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        fault = HttpFault(status, "unknown", "there is no such page or path")
        if status == 405:
            fault = HttpFault(status, "wrong_method", f"the path does not take {request.method}")
        if pages is not None and "text/html" in request.headers.get("accept", ""):
            return await run_in_threadpool(pages.error_page, request.scope, status, fault)
        return JSONResponse(body_of(fault), status)

    return answer
