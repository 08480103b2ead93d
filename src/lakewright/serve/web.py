"""The HTTP service with the operator's page, if what they need is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.errors import NotInstalled

if TYPE_CHECKING:
    from lakewright.serve.service import Service, Serving

__all__ = ["make"]


def make(serving: Serving) -> Service | None:
    """Return the service for a server's project; a server that was started on demand has none.

    Raises:
        NotInstalled: A package of the extra `serve` is missing.
    """
    if serving.options.is_on_demand:
        return None
    try:
        from lakewright.serve.http.service import make_service
        from lakewright.serve.page.routes import Pages
    except ModuleNotFoundError as missing:
        raise NotInstalled(
            f"the server needs the Python package {missing.name}",
            remedy="pip install 'lakewright[serve]'",
        ) from missing
    return make_service(serving, Pages)
