"""Opening the back end that a project asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from importlib import import_module
from typing import Any, Protocol, TypeVar, cast

from lakewright.errors import Fault, NotInstalled, SpecError
from lakewright.manifest.store import Store
from lakewright.spec.near import suggestion
from lakewright.stores.memory import MemoryStore
from lakewright.stores.unmade import UnmadeStore

__all__ = ["KINDS", "open_lazily", "open_store", "read_store"]

T = TypeVar("T")

KINDS: Mapping[str, str] = {
    "delta": "lakewright.stores.delta.store:DeltaStore",
    "dynamodb": "lakewright.stores.dynamodb.store:DynamoDbStore",
    "memory": "lakewright.stores.memory:MemoryStore",
    "postgres": "lakewright.stores.sql.postgres:PostgresStore",
    "sqlite": "lakewright.stores.sql.sqlite:SqliteStore",
}
"""Class of each kind, imported when it is asked for."""

OF_THE_LEDGER = frozenset({"kind", "lease", "retention", "takeover"})
"""Settings of a manifest that don't concern its back end."""


class StoreKind(Protocol):
    """A class of back end."""

    options: frozenset[str]

    def open(self, settings: Mapping[str, Any]) -> Store:
        """Return the back end, ready to be used."""
        ...

    def look(self, settings: Mapping[str, Any]) -> Store | datetime:
        """Return the back end, or the time by it where opening would have to make the manifest."""
        ...


def open_store(settings: Mapping[str, Any]) -> Store:
    """Return the back end that settings name, ready to be used.

    Args:
        settings: `kind` (default `sqlite`) and what the kind takes: `path` of sqlite, absolute or below the
            current folder; `url` of postgres; `table`, `region` and `endpoint_url` of dynamodb; `location` of
            delta.

    Raises:
        SpecError: The kind is unknown, or a setting isn't one of the kind's.
        NotInstalled: A driver is missing, or the manifest is a newer version's.
        StoreUnavailable: It can't be reached or written.
    """
    with _known(settings) as (found, given):
        return found.open(given)


def open_lazily(settings: Mapping[str, Any]) -> Store:
    """Return the back end that settings name; where there is no manifest yet, the first write makes it.

    Args:
        settings: As for `open_store`.

    Raises:
        SpecError, NotInstalled, StoreUnavailable: As `open_store` does.
    """
    with _known(settings) as (found, given):
        seen = found.look(given)
        if not isinstance(seen, datetime):
            return seen
        return UnmadeStore(partial(found.look, given), partial(found.open, given))


@contextmanager
def _known(settings: Mapping[str, Any]) -> Iterator[tuple[StoreKind, dict[str, Any]]]:
    """Yield the class of back end that settings name, and the settings that are its own."""
    kind = str(settings.get("kind", "sqlite"))
    if kind not in KINDS:
        remedy = suggestion(kind, KINDS)
        raise SpecError(
            [Fault(f"unknown kind {kind!r} of manifest; known: {', '.join(KINDS)}", remedy=remedy)]
        )
    module, _, name = KINDS[kind].partition(":")
    given = {option: value for option, value in settings.items() if option not in OF_THE_LEDGER}
    try:
        found = cast("StoreKind", getattr(import_module(module), name))
        _check_options(kind, given, found.options)
        yield found, given
    except ModuleNotFoundError as missing:
        raise NotInstalled(
            f"a manifest of kind {kind} needs the Python package {missing.name}",
            remedy=f"pip install 'lakewright[{kind}]'",
        ) from missing


def read_store(settings: Mapping[str, Any], ask: Callable[[Store], T]) -> T:
    """Return what `ask` finds in a back end; none is made, and one in a file is not written to.

    Args:
        settings: As for `open_store`.
        ask: Only reads; called again where others wrote meanwhile.

    Raises:
        SpecError, NotInstalled, StoreUnavailable: As `open_store` does.
    """
    with _known(settings) as (found, given):
        if settings.get("kind", "sqlite") == "sqlite":
            from lakewright.stores.sql.reading import read_sqlite
            from lakewright.stores.sql.sqlite import SqliteStore

            place = SqliteStore.place(given)
            return read_sqlite(place, ask) if place.exists() else ask(MemoryStore())
        seen = found.look(given)
    store = MemoryStore() if isinstance(seen, datetime) else seen
    try:
        return ask(store)
    finally:
        store.close()


def _check_options(kind: str, given: Iterable[str], known: frozenset[str]) -> None:
    unknown = sorted(set(given) - known)
    if unknown:
        raise SpecError(
            Fault(f"a manifest of kind {kind} has no setting {option!r}", remedy=suggestion(option, known))
            for option in unknown
        )
