"""The kind `postgres`: a PostgreSQL server, for several machines."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar

from lakewright.manifest.store import Store
from lakewright.stores.backend import Backend


class PostgresBackend(Backend):
    """A PostgreSQL server; libpq's environment variables supply what `url` leaves out."""

    options = frozenset({"url"})
    required: ClassVar[Mapping[str, str]] = {
        "url": "Give url: postgresql://host/database; libpq's environment supplies what it leaves out."
    }

    @property
    def url(self) -> str:
        """The address of the server and database."""
        return str(self.settings.get("url", "postgresql://"))

    def open(self) -> Store:
        from lakewright.stores.postgres.store import PostgresStore

        return PostgresStore(self.url)

    def open_existing(self) -> Store | datetime:
        from lakewright.stores.postgres.store import PostgresStore

        return PostgresStore.open_existing(self.url)
