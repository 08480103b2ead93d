"""What the answers of a server are made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from lakewright.manifest.redact import Redactor
from lakewright.serve.service import Gauges
from lakewright.serve.watched_project import WatchedProject

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import Route
    from starlette.types import Scope

    from lakewright.app import App
    from lakewright.serve.http.access import Access
    from lakewright.serve.http.commands import Commands

__all__ = ["MakePages", "Site", "SitePages"]


@dataclass(frozen=True, slots=True)
class Site:
    """One project, as it is served.

    Attributes:
        project: The project, which is loaded again when its files change.
        allows_data: Whether rows of tables are shown.
        gauges: What the warm session tells of itself.
        deciding: Held while a decision is recorded.
    """

    project: WatchedProject
    access: Access
    commands: Commands
    environ: Mapping[str, str]
    allows_data: bool = False
    gauges: Gauges = field(default_factory=Gauges)
    deciding: Lock = field(default_factory=Lock, compare=False, repr=False)

    def app(self) -> App:
        """Return the project as its files declare it now.

        Raises:
            LakewrightError: It can't be loaded.
        """
        return self.project.app()

    def redactor(self) -> Redactor:
        """Return what removes the project's secrets; without a project, those of the environment."""
        try:
            return self.project.app().redactor
        except Exception:  # a broken project has no secrets that could be known
            return Redactor.of(self.environ)


class SitePages(Protocol):
    """The pages of a site."""

    def routes(self) -> list[Route]:
        """Return their routes."""
        ...

    def error_page(self, scope: Scope, status: int, error: Exception) -> Response:
        """Return the page for a request that failed."""
        ...


MakePages = Callable[[Site], SitePages]
"""Makes the pages of a site."""
