"""Places: the locations of an entity's slices and its silver table.

Source: `processing-strategies.md`. The layout is Datalake Foundation's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from lakewright.errors import SpecError
from lakewright.schema.sql import name_sql
from lakewright.spec.models.slice_folder import SliceFolder

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")
LOCAL = re.compile(r"^file:(//)?(?=/)")


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a Delta table: either a location or a name in the catalog.

    Attributes:
        location: A local path without scheme, or a URI.
        name: `database.table` or `catalog.database.table`, unquoted.
        beside: The address of the table beside which this one is until it replaces that; None for all others.
    """

    location: str | None = None
    name: str | None = None
    beside: Address | None = field(default=None, compare=False, repr=False)

    @property
    def shown(self) -> str:
        """The table as errors of slices name it: one beside an entity's own is shown as the own."""
        return str(self.beside or self)

    @property
    def sql(self) -> str:
        """The table as quoted SQL.

        Example:
            >>> Address(name="silver_shop.orders").sql
            '`silver_shop`.`orders`'
        """
        if self.name is not None:
            return name_sql(*self.name.split("."))
        return f"delta.{name_sql(self.location or '')}"

    def __str__(self) -> str:
        return self.name if self.name is not None else self.location or ""


@dataclass(frozen=True, slots=True)
class Places:
    """The places of one entity.

    Attributes:
        slices: Where its slices are.
        silver: Its table.
        raw: Folder of deliveries that are not slices yet.
        bronze_table: Catalog table of its slices, if one is declared instead of the folder.
        quarantine: Folder of the bad rows of its slices.
    """

    slices: SliceFolder
    silver: Address
    raw: str
    bronze_table: str | None = None
    quarantine: str = ""

    @property
    def bronze(self) -> str:
        """What the places of its slices begin with: their folder, if it holds no others."""
        return str(self.slices)


def place_within(root: str, *parts: str, what: str = "path") -> str:
    """Return `parts` joined to `root`, without dots, repeated slashes or a trailing slash.

    Raises:
        SpecError: A part is absolute, names another file system or leaves the root.

    Example:
        >>> place_within("s3a://lake/", "bronze", "shop//orders/")
        's3a://lake/bronze/shop/orders'
    """
    steps: list[str] = []
    for part in parts:
        if part.startswith(("/", "\\")) or SCHEME.match(part) or "\\" in part:
            raise _outside(what, part, root)
        steps.extend(step for step in part.split("/") if step not in ("", "."))
    if ".." in steps or any(map(_CONTROL.search, steps)):
        raise _outside(what, "/".join(parts), root)
    return "/".join([canonical_root(root), *steps])


def canonical_root(root: str) -> str:
    """Return a root folder without a trailing slash. `file:` URIs become local paths."""
    return LOCAL.sub("", root).rstrip("/")


def _outside(what: str, path: str, root: str) -> SpecError:
    return SpecError.of(
        f"{what} {path!r} leaves the root folder {root!r}",
        remedy="Give a path relative to the root folder, without '..', scheme, backslash or leading slash.",
    )
