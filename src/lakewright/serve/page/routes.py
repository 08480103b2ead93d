"""The routes of the page: its views, its forms, its files, and how a browser signs in."""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from lakewright.errors import LakewrightError, SpecError
from lakewright.errors.phrase import Phrase
from lakewright.serve.http.access import COOKIE, CSRF_FIELD, Asker
from lakewright.serve.http.actions import ACTIONS, begin_job
from lakewright.serve.http.endpoint import ApiCall
from lakewright.serve.http.events import stream
from lakewright.serve.http.faults import HttpFault, fault_of, status_of
from lakewright.serve.http.site import BegunCommand
from lakewright.serve.page import views
from lakewright.serve.page.inbox import BackgroundObserver, Look, inbox_view
from lakewright.serve.page.lineage import LineagePage
from lakewright.serve.page.render import render
from lakewright.serve.page.views import search_view, undo_view
from lakewright.usecases.history import find_run, is_resumable, resume_command

if TYPE_CHECKING:
    from starlette.types import Scope

    from lakewright.due.plan import Plan
    from lakewright.serve.http.site import Site
    from lakewright.spec.project import Project


log = logging.getLogger(__name__)

Values = Mapping[str, Any]

STATIC = {
    "page.css": "text/css",
    "page.js": "text/javascript",
    "htmx.min.js": "text/javascript",
    "htmx-license.txt": "text/plain",
    "icon.svg": "image/svg+xml",
}

DONE = {
    "decide": "Decided: the next apply goes by it.",
    "resolve": "Resolved: the slice is ready again.",
    "requeue": "Requeued: the next run processes the slice again.",
    "release": "Released: the slice is ready again.",
    "skip": "Skipped: the slices behind it continue.",
    "unskip": "The skip is undone: the slice is ready again.",
    "noted": "It is recorded. Slices of the table were processed already: the inbox shows what is due now.",
    "cancel": "Cancelled: the run ends after the present commit.",
    "cancel-command": "Cancelled: the command ends after the present commit.",
}
"""What the page says after an action; nothing of a request is repeated in it."""

HEADINGS = {
    401: "Who are you?",
    403: "That is not allowed",
    404: "There is no such page",
    409: "That is not possible now",
    413: "That is too much",
    421: "That is not this server",
    422: "The project has errors",
    429: "Too many at once",
    503: "Something is not reachable",
}


class Pages:
    """The page of a site.

    Args:
        site: The project and its commands.
    """

    def __init__(self, site: Site) -> None:
        self.site = site
        self.observer = BackgroundObserver()
        self.lineage = LineagePage(self._plan)
        self._acts = 0

    def routes(self) -> list[Route]:
        """Return the routes of all pages."""
        shown: Mapping[str, tuple[str, Callable[[views.View], Values]]] = {
            "/": ("inbox.html.j2", self._inbox),
            "/runs": ("runs.html.j2", views.runs_view),
            "/runs/{run_id}": ("run.html.j2", views.run_view),
            "/commands/{command_id}": ("command.html.j2", views.command_values),
            "/entities": ("entities.html.j2", views.entities_view),
            "/entities/{name:path}": ("entity.html.j2", views.entity_view),
            "/items": ("items.html.j2", views.items_view),
            "/item": ("item.html.j2", views.item_view),
            "/undo": ("undo.html.j2", undo_view),
            "/lineage": ("lineage.html.j2", self.lineage.view),
            "/search": ("search.html.j2", search_view),
        }
        followed: Mapping[str, tuple[str, Callable[[views.View], Values], str]] = {
            "/runs/{run_id}/live": ("run_body.html.j2", views.run_values, "run"),
            "/commands/{command_id}/live": ("command_body.html.j2", views.command_values, "command"),
        }
        return [
            *(Route(path, self._live(*each)) for path, each in followed.items()),
            *(Route(path, self._page(*each)) for path, each in shown.items()),
            Route("/do/{action}", self._do, methods=["POST"]),
            Route("/login", self._login, methods=["POST"]),
            Route("/login/{token}", self._login),
            Route("/logout", self._logout, methods=["POST"]),
            Route("/static/{name}", _static),
        ]

    def _inbox(self, view: views.View) -> Values:
        return inbox_view(view, self._look(view))

    def _look(self, view: views.View) -> Look | None:
        changes = self._acts + view.site.commands.ended
        return self.observer.latest(view.app, view.site.project.loads, changes)

    def _plan(self, view: views.View) -> Plan | None:
        look = self._look(view)
        return None if look is None else look.plan

    def error_page(self, scope: Scope, status: int, error: Exception) -> Response:
        """Return the page for a request that failed."""
        faults = error.faults if isinstance(error, SpecError) else (fault_of(error),)
        heading = HEADINGS.get(status, "That did not work" if status < 500 else "Something went wrong")
        is_project = isinstance(error, SpecError) and scope["method"] == "GET"
        note = "The page shows the project again as soon as its files are mended." if is_project else None
        values = {"heading": heading, "faults": faults, "note": note, "asks_token": status == 401}
        request = Request(scope)
        body = render("error.html.j2", {**self._frame(request), **values}, self.site.redactor())
        return HTMLResponse(body, status)

    def _frame(self, request: Request) -> dict[str, Any]:
        """Return what every page has around its content."""
        asker: Asker | None = request.scope.get("asker")
        access, project = self.site.access, self._project()
        return {
            "project_name": project.name if project and asker else "Lakewright",
            "fault_count": len(project.faults) if project and asker else 0,
            "version": version("lakewright"),
            "asker": asker,
            "allows_actions": access.allows_actions,
            "allows_data": self.site.allows_data,
            "csrf": access.csrf_token(asker) if asker else "",
            "here": request.url.path,
            "query_text": "",
            "done": DONE.get(request.query_params.get("done", "")),
            "made_at": None,
        }

    def _project(self) -> Project | None:
        try:
            return self.site.app().project
        except LakewrightError:
            return None

    def _view(self, request: Request) -> views.View:
        query = dict(request.query_params.items())
        return views.View(self.site, self.site.app(), request.path_params, query)

    def _page(self, template: str, view: Callable[[views.View], Values]) -> Callable[[Request], Any]:
        def made(request: Request) -> Response:
            values = view(self._view(request))
            shown = {**self._frame(request), **values}
            return HTMLResponse(render(template, shown, self.site.redactor()))

        return self._answered(made)

    def _answered(self, make: Callable[[Request], Response]) -> Callable[[Request], Any]:
        """Return what answers requests in a thread; every failure gets a page."""

        async def answer(request: Request) -> Response:
            try:
                return await run_in_threadpool(make, request)
            except Exception as error:
                status = status_of(error)
                if status == 500:
                    log.error("a page failed", exc_info=error)
                return await run_in_threadpool(self.error_page, request.scope, status, error)

        return answer

    def _live(
        self, template: str, view: Callable[[views.View], Values], name: str
    ) -> Callable[[Request], Any]:
        def made(request: Request) -> Response:
            frame = self._frame(request)

            def read() -> tuple[str, bool]:
                values = view(self._view(request))
                found = values[name]
                is_last = found["finished"] is not None if name == "run" else not found.is_running
                return render(template, {**frame, **values}, self.site.redactor()), is_last

            read()  # a failure is a page, not an event
            return stream(read)

        return self._answered(made)

    async def _do(self, request: Request) -> Response:
        form = await _form(request)
        form.pop(CSRF_FIELD, None)
        answered = self._answered(lambda _: RedirectResponse(self._done(request, form), 303))
        answer: Response = await answered(request)
        return answer

    def _done(self, request: Request, form: Mapping[str, str]) -> str:
        """Do what a form asks, and return the page to show next."""
        action = request.path_params["action"]
        self.site.access.check_actions()
        call = ApiCall(self.site, self.site.app(), request.scope["asker"])
        done = _BY_PAGE[action](call, form) if action in _BY_PAGE else _by_api(call, action, form)
        if isinstance(done, BegunCommand) and action != "cancel-command":
            return f"/commands/{done.command_id}"
        self._acts += 1
        return _back(request, "noted" if isinstance(done, list) and done[0]["warnings"] else action)

    async def _login(self, request: Request) -> Response:
        if request.method == "POST":
            token = (await _form(request)).get("token", "")
        else:
            token = request.path_params["token"]
        try:
            session = self.site.access.open_session(token.strip())
        except HttpFault as error:
            return self.error_page(request.scope, 401 if error.status == 403 else error.status, error)
        # Not a redirect: a browser that came from another site would not send the new cookie along.
        response = HTMLResponse(render("welcome.html.j2", {}, self.site.redactor()))
        response.set_cookie(COOKIE, session, httponly=True, samesite="strict", path="/")
        return response

    async def _logout(self, request: Request) -> Response:
        asker: Asker = request.scope["asker"]
        if asker.session is not None:
            self.site.access.close_session(asker.session)
        return RedirectResponse("/", 303)


async def _form(request: Request) -> dict[str, str]:
    return dict(parse_qsl((await request.body()).decode("utf-8", "replace"), keep_blank_values=True))


_BY_API: Mapping[str, str] = {
    "apply": "/apply",
    "cancel": "/runs/{run_id}/cancel",
    "cancel-command": "/commands/{command_id}/cancel",
    "decide": "/decide",
    "job": "/runs",
    "plan": "/plans",
    "process": "/process",
    "undo": "/undo",
    "undo-preview": "/undo/preview",
    **{action: f"/item/{action}" for action in views.LABELS},
}
"""The paths of the API that do what forms ask."""

_ENDPOINTS = {endpoint.path: endpoint for endpoint in ACTIONS if endpoint.method == "POST"}
_FIELDS = {"run": "run_id", "command": "command_id", "name": "names"}
"""The parameters of endpoints whose fields in a form have other names."""


def _by_api(call: ApiCall, action: str, form: Values) -> Any:
    """Do what a form asks as the API does it, and return the endpoint's answer.

    Raises:
        HttpFault: There is no such action, or a field is missing or wrong.
    """
    action = "plan" if action == "job" and form.get("plan") else action
    if action not in _BY_API:
        raise HttpFault(404, "unknown", f"there is no action {action!r}")
    endpoint = _ENDPOINTS[_BY_API[action]]
    given = {_FIELDS.get(name, name): value for name, value in form.items() if value}
    of_path = {name: given.get(name, "") for name in re.findall(r"{(\w+)}", endpoint.path)}
    schemas = endpoint.takes.model_json_schema()["properties"]
    body = {name: _value(given[name], each) for name, each in schemas.items() if name in given}
    return endpoint.handle(call, **of_path, **endpoint.arguments({}, body))


def _value(text: str, schema: Mapping[str, Any]) -> Any:
    """Return the value of a field; several are written as a shell would pass them to the command line.

    Raises:
        HttpFault: A quote is not closed.
    """
    if schema.get("type") == "boolean":
        return text == "1"
    if schema.get("type") != "array":
        return text
    try:
        return shlex.split(text)
    except ValueError:
        raise HttpFault(400, "usage", f"{text!r} has a quote that is not closed", "Close it.") from None


def _resume(call: ApiCall, form: Values) -> BegunCommand:
    """Begin to resume a run, with the choices of that run.

    Raises:
        HttpFault: Another command is named instead.
    """
    run = find_run(call.app, form.get("run", ""))
    if not is_resumable(run):
        message = f"run {run.run_id} is not resumed: it removes rows"
        raise HttpFault(409, "not_resumed", message, Phrase("Type ", resume_command(run), "."))
    return begin_job(
        call,
        "job",
        form.get("reason", ""),
        job=run.job,
        phase=run.phase,
        parameters=run.arguments,
        targets=run.facts.get("targets") or (),
        no_lifecycle=bool(run.facts.get("no_lifecycle")),
        resume=True,
    )


def _examine(call: ApiCall, form: Values) -> BegunCommand:
    if form.get("entity") not in call.app.project.entities:
        raise HttpFault(404, "unknown", "there is no such entity")
    arguments = ["doctor", "--", str(form["entity"])]
    return call.site.commands.begin(arguments, author=call.asker.user, reason="examine")


_BY_PAGE: Mapping[str, Callable[[ApiCall, Values], BegunCommand]] = {"examine": _examine, "resume": _resume}
"""The actions that only the page has."""


def _back(request: Request, action: str) -> str:
    """Return the path of the page that sent a form, with a note on what was done; never another server's."""
    came = urlsplit(request.headers.get("referer", ""))
    query = [(name, value) for name, value in parse_qsl(came.query) if name != "done"]
    from lakewright.serve.page.render import link

    path = came.path if came.path.startswith("/") and not came.path.startswith("//") else "/"
    return link(path, **dict(query), done=action)


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in STATIC:
        raise_missing = HttpFault(404, "unknown", "there is no such file")
        return Response(raise_missing.fault.message, 404)
    is_versioned = bool(request.url.query)
    kept = "public, max-age=31536000, immutable" if is_versioned else "no-cache"
    return Response(_file(name), media_type=STATIC[name], headers={"cache-control": kept})


@cache
def _file(name: str) -> bytes:
    return files("lakewright.serve.page").joinpath("static", name).read_bytes()
