"""The names of the columns that processing adds to a slice.

Source: `processing-strategies.md`, "Common Processing Pipeline" and "System Columns".
"""

from __future__ import annotations

from dataclasses import dataclass

from lakewright.transform.column_names import normal_name

__all__ = ["SystemColumns"]


@dataclass(frozen=True, slots=True)
class SystemColumns:
    """System columns of one entity.

    Attributes:
        prefix: Of all of them but the primary key.
        destination: The silver table's name, which the primary key's column carries.
    """

    prefix: str
    destination: str

    @property
    def hash(self) -> str:
        """SHA-256 of the source columns, hex."""
        return f"{self.prefix}SourceHash"

    @property
    def valid_from(self) -> str:
        """Instant from which a version holds."""
        return f"{self.prefix}ValidFrom"

    @property
    def valid_to(self) -> str:
        """Instant from which it doesn't hold any more; null while it is current."""
        return f"{self.prefix}ValidTo"

    @property
    def is_current(self) -> str:
        """Whether a version is the current one."""
        return f"{self.prefix}IsCurrent"

    @property
    def filename(self) -> str:
        """The slice's name."""
        return f"{self.prefix}source_filename"

    @property
    def key(self) -> str:
        """SHA-256 of the business key, hex; never null."""
        return normal_name(f"PK_{self.destination}")

    @property
    def deleted(self) -> str:
        """Soft delete; never null."""
        return f"{self.prefix}deleted"

    @property
    def last_seen(self) -> str:
        """When the record was last in a processed slice."""
        return f"{self.prefix}lastSeen"

    @property
    def temporal(self) -> tuple[str, str, str]:
        """The columns that only Historic has."""
        return (self.valid_from, self.valid_to, self.is_current)

    @property
    def reserved(self) -> tuple[str, ...]:
        """Names that a slice may not bring."""
        return (self.hash, *self.temporal, self.filename, self.last_seen, *_DELTA_NAMES)

    @property
    def suppliable(self) -> tuple[str, str]:
        """Names that a slice may bring, whose values then count."""
        return (self.key, self.deleted)

    @property
    def all(self) -> frozenset[str]:
        """All of them, in lower case."""
        return frozenset(name.lower() for name in (*self.reserved, *self.suppliable))


_DELTA_NAMES = ("_change_type", "_commit_version", "_commit_timestamp")
