"""Names in the catalog for tables that are stored by path, so that other engines find them.

The path stays the address of such a table: what is due is still found without Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.errors.phrase import Phrase
from lakewright.lake.observation import observe_table
from lakewright.lake.spark_errors import spark_errors
from lakewright.lake.table import create_table, drop_entry_alone, find_entry
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.spark.causes import first_line
from lakewright.spec.models.places import Address

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.targets.target import Target
    from lakewright.workspace.workspace import Workspace


_WRITING = frozenset({Phase.CREATE, Phase.BUILD, Phase.DESTROY})


def register_tables(target: Target, workspace: Workspace, phase: Phase) -> Iterator[Phrase]:
    """Give the table of a target its name in the catalog, or remove the name after the table.

    Nothing happens without `lake: {register: …}`. The rows are committed already: a catalog that can't be
    reached is reported and not an error of the target.

    Yields:
        Why the table does not have its name.
    """
    database, table = workspace.lake.settings.registered_in, target.table_by_path(workspace)
    if not database or table is None or phase not in _WRITING:
        return
    name = f"{database}.{table[0]}"
    refused: tuple[type[Exception], ...] = (LakewrightError, *spark_errors())
    try:
        other = _register(workspace.lake, name, table[1])
    except refused as error:
        yield Phrase(f"its table is not registered as {name}: {first_line(error)}")
        return
    if other is not None:
        yield Phrase(f"its table is not registered as {name}: that is a table at {other}")


def _register(lake: Lake, name: str, location: str) -> str | None:
    """Return where the table lies that has the name instead."""
    address = Address(name=name)
    drop_entry_alone(lake, address)
    entry = find_entry(lake, name)
    if entry is not None:
        other = entry.location or "no place of its own"
        return None if Resource.file(other) == Resource.file(location) else other
    if observe_table(lake, Address(location=location)).exists:
        create_table(lake, address, (), place=location)
    return None
