"""The base of all connections, and how a definition refers to one."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Discriminator, Tag
from pydantic import Field as Declared

from lakewright.spec.models.base import KindOf, Named, RefersTo


class Connection(Named):
    """A connection as declared."""

    description: str | None = Declared(default=None, description="Description for readers.")


ConnectionReference: TypeAlias = Annotated[
    Annotated[str, Tag("name")] | Annotated[Connection, KindOf("connection"), Tag("connection")],
    Discriminator(lambda declared: "name" if isinstance(declared, str) else "connection"),
    RefersTo.CONNECTION,
]
"""The name of a connection, or the connection itself."""
