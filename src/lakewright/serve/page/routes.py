"""The routes of the page: its views, its forms, its files, and how a browser signs in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from lakewright.errors import LakewrightError, SpecError
from lakewright.serve.http.access import COOKIE, Asker
from lakewright.serve.http.actions import ACTIONS
from lakewright.serve.http.endpoint import ApiCall, Endpoint
from lakewright.serve.http.faults import HttpFault, fault_of
from lakewright.serve.http.reads import stream
from lakewright.serve.http.site import BegunCommand
from lakewright.serve.page import views
from lakewright.serve.page.inbox import BackgroundObserver, Look, inbox_view
from lakewright.serve.page.lineage import LineagePage
from lakewright.serve.page.render import link, render

if TYPE_CHECKING:
    from lakewright.due.plan import Plan
    from lakewright.serve.http.site import Site
    from lakewright.spec.project import Project


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
    "cancel": "Cancelled: it ends after the present commit.",
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
            "/undo": ("undo.html.j2", views.undo_view),
            "/lineage": ("lineage.html.j2", self.lineage.view),
            "/search": ("search.html.j2", views.search_view),
        }
        followed: Mapping[str, tuple[str, Callable[[views.View], Values], str]] = {
            "/runs/{run_id}/live": ("run_body.html.j2", views.run_values, "run"),
            "/commands/{command_id}/live": ("command_body.html.j2", views.command_values, "command"),
        }
        done = [each for each in ACTIONS if each.method == "POST"]
        return [
            *(Route(path, partial(self._live, *each)) for path, each in followed.items()),
            *(Route(path, partial(self._page, *each)) for path, each in shown.items()),
            *(Route(f"/do{each.path}", partial(self._do, each), methods=["POST"]) for each in done),
            Route("/login", self._login, methods=["POST"]),
            Route("/login/{token}", self._login),
            Route("/logout", self._logout, methods=["POST"]),
            Route("/static/{name}", _static),
        ]

    def _inbox(self, view: views.View) -> Values:
        return inbox_view(view, self._look(view))

    def _look(self, view: views.View) -> Look | None:
        changes = self._acts + view.site.commands.ended
        return self.observer.latest(view.app, changes)

    def _plan(self, view: views.View) -> Plan | None:
        look = self._look(view)
        return None if look is None else look.plan

    def error_page(self, request: Request, status: int, error: Exception) -> Response:
        """Return the page for a request that failed."""
        faults = error.faults if isinstance(error, SpecError) else (fault_of(error),)
        heading = HEADINGS.get(status, "That did not work" if status < 500 else "Something went wrong")
        is_project = isinstance(error, SpecError) and request.method == "GET"
        note = "The page shows the project again as soon as its files are mended." if is_project else None
        values = {"heading": heading, "faults": faults, "note": note, "asks_token": status == 401}
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

    def _page(self, template: str, view: Callable[[views.View], Values], request: Request) -> Response:
        values = view(self._view(request))
        return HTMLResponse(render(template, {**self._frame(request), **values}, self.site.redactor()))

    def _live(
        self, template: str, view: Callable[[views.View], Values], name: str, request: Request
    ) -> Response:
        frame = self._frame(request)

        def read() -> tuple[str, bool]:
            values = view(self._view(request))
            found = values[name]
            is_last = found["finished"] is not None if name == "run" else not found.is_running
            return render(template, {**frame, **values}, self.site.redactor()), is_last

        read()  # a failure is a page, not an event
        return stream(read)

    def _do(self, endpoint: Endpoint, request: Request) -> Response:
        """Do what a form asks as the API does it, and lead to the page to show next."""
        self.site.access.check_actions()
        call = ApiCall(self.site, self.site.app(), request.scope["asker"])
        done = endpoint.handle(call, **request.path_params, **endpoint.arguments_of_form(_form(request)))
        action = endpoint.path.rpartition("/")[2]
        if isinstance(done, BegunCommand) and action != "cancel":
            return RedirectResponse(f"/commands/{done.command_id}", 303)
        self._acts += 1
        has_warned = isinstance(done, list) and done[0]["warnings"]
        return RedirectResponse(_back(request, "noted" if has_warned else action), 303)

    def _login(self, request: Request) -> Response:
        token = request.path_params.get("token") or _form(request).get("token", "")
        session = self.site.access.open_session(token.strip())
        # Not a redirect: a browser that came from another site would not send the new cookie along.
        response = HTMLResponse(render("welcome.html.j2", {}, self.site.redactor()))
        response.set_cookie(COOKIE, session, httponly=True, samesite="strict", path="/")
        return response

    def _logout(self, request: Request) -> Response:
        asker: Asker = request.scope["asker"]
        if asker.session is not None:
            self.site.access.close_session(asker.session)
        return RedirectResponse("/", 303)


def _form(request: Request) -> dict[str, str]:
    return dict(parse_qsl(request.scope["body"].decode("utf-8", "replace"), keep_blank_values=True))


def _back(request: Request, action: str) -> str:
    """Return the path of the page that sent a form, with a note on what was done; never another server's."""
    came = urlsplit(request.headers.get("referer", ""))
    query = [(name, value) for name, value in parse_qsl(came.query) if name != "done"]
    path = came.path if came.path.startswith("/") and not came.path.startswith("//") else "/"
    return link(path, **dict(query), done=action)


def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in STATIC:
        raise HttpFault(404, "unknown", "there is no such file")
    is_versioned = bool(request.url.query)
    kept = "public, max-age=31536000, immutable" if is_versioned else "no-cache"
    return Response(_file(name), media_type=STATIC[name], headers={"cache-control": kept})


@cache
def _file(name: str) -> bytes:
    return files("lakewright.serve.page").joinpath("static", name).read_bytes()
