"""The system columns: those that processing adds to a slice.

Source: `processing-strategies.md`, "Common Processing Pipeline" and "System Columns".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakewright.schema.sql import name_sql
from lakewright.spec.models.column import normal_name


@dataclass(frozen=True, slots=True)
class SystemColumns:
    """Names of the system columns of one entity.

    Attributes:
        prefix: Prefix of all of them except the primary key.
        destination: Name of the silver table, which is part of the primary key's name.
    """

    prefix: str
    destination: str

    @property
    def hash(self) -> str:
        """SHA-256 of the source columns, hex."""
        return f"{self.prefix}SourceHash"

    @property
    def valid_from(self) -> str:
        """Instant from which a version is valid."""
        return f"{self.prefix}ValidFrom"

    @property
    def valid_to(self) -> str:
        """Instant from which a version is no longer valid; null for the current version."""
        return f"{self.prefix}ValidTo"

    @property
    def is_current(self) -> str:
        """Whether a version is the current one of its record."""
        return f"{self.prefix}IsCurrent"

    @property
    def filename(self) -> str:
        """Name of the slice that a row comes from."""
        return f"{self.prefix}source_filename"

    @property
    def key(self) -> str:
        """SHA-256 of the business key, hex; never null."""
        return normal_name(f"PK_{self.destination}")

    @property
    def deleted(self) -> str:
        """Flag of a soft delete; never null."""
        return f"{self.prefix}deleted"

    @property
    def last_seen(self) -> str:
        """Instant at which a slice with the record was last processed."""
        return f"{self.prefix}lastSeen"

    def current_sql(self, *, has_history: bool) -> str:
        """Return the condition of current rows: not deleted, and with history the open versions."""
        # Delta's null counts show which files contain open versions; statistics of a flag do not.
        return f"{name_sql(self.valid_to)} IS NULL" if has_history else f"NOT {name_sql(self.deleted)}"

    def valid_sql(self, instant: str) -> str:
        """Return the condition of versions that were valid at an instant, which is an expression in SQL."""
        start, end = name_sql(self.valid_from), name_sql(self.valid_to)
        return f"{start} <= {instant} AND ({end} IS NULL OR {end} > {instant})"

    def has_history(self, names: Iterable[str]) -> bool:
        """Return whether these are the columns of a table with history.

        A table keeps the columns of its strategy until it is built again under another one.
        """
        return self.valid_to.lower() in map(str.lower, names)

    @property
    def temporal(self) -> tuple[str, str, str]:
        """The columns that only the strategy `historic` adds."""
        return (self.valid_from, self.valid_to, self.is_current)

    @property
    def reserved(self) -> tuple[str, ...]:
        """Names that no column of a slice may have."""
        return (self.hash, *self.temporal, self.filename, self.last_seen, *_DELTA_NAMES)

    @property
    def suppliable(self) -> tuple[str, str]:
        """Names that columns of a slice may have; their values are then used."""
        return (self.key, self.deleted)

    @property
    def all(self) -> frozenset[str]:
        """All names, in lower case."""
        return frozenset(name.lower() for name in (*self.reserved, *self.suppliable))


_DELTA_NAMES = ("_change_type", "_commit_version", "_commit_timestamp")
