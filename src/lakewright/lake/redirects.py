"""Locations whose files are elsewhere while a test of the project runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from posixpath import normpath

from lakewright.plan.resource import Resource

__all__ = ["Redirects"]


@dataclass(frozen=True, slots=True)
class Redirects:
    """The locations that are redirected, and the folder that they are redirected to.

    Attributes:
        folder: The folder that receives all that is written, each location under its own path.
        roots: Redirected locations; a location that contains one of them, or lies in one, is redirected too.
    """

    folder: Path
    roots: frozenset[Resource]

    @classmethod
    def of(cls, folder: Path, places: Iterable[str]) -> Redirects:
        """Return redirects of these locations, which are local paths or URIs."""
        return cls(folder, frozenset(Resource.file(_plain(place)) for place in places))

    def __call__(self, place: str) -> str:
        """Return a local path in the folder for a redirected location; others are returned unchanged.

        Example:
            >>> redirects = Redirects.of(Path("/tmp/t"), ["/lake/gold", "s3a://bucket/x"])
            >>> redirects("/lake/gold/prices"), redirects("/lake/raw"), redirects("s3a://bucket/x/y")
            ('/tmp/t/lake/gold/prices', '/lake/raw', '/tmp/t/s3a/bucket/x/y')
        """
        wanted = Resource.file(_plain(place))
        is_redirected = any(root.intersects(wanted) for root in self.roots)
        return self.inside(place) if is_redirected else place

    def inside(self, place: str) -> str:
        """Return the path of a location in the folder."""
        scheme, _, rest = place.rpartition("://")
        path = normpath(f"/{scheme}/{rest.lstrip('/')}") if scheme else normpath(f"/{place.lstrip('/')}")
        return f"{self.folder}{path.rstrip('/')}"


def _plain(place: str) -> str:
    return place if "://" in place else normpath(place)
