"""Opening the back end that a project asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from importlib import import_module
from typing import Any, Protocol, TypeVar, cast

from lakewright.errors import Fault, NotInstalled, SpecError
from lakewright.manifest.settings import SETTINGS, check_locks_and_history
from lakewright.manifest.store import Store
from lakewright.spec.suggestions import suggestion
from lakewright.stores.memory import MemoryStore
from lakewright.stores.unmade import UnmadeStore

__all__ = ["COMMON", "KINDS", "OPTIONS", "check_manifest", "open_lazily", "open_store", "read_store"]

T = TypeVar("T")

KINDS: Mapping[str, str] = {
    "delta": "lakewright.stores.delta.store:DeltaStore",
    "dynamodb": "lakewright.stores.dynamodb.store:DynamoDbStore",
    "memory": "lakewright.stores.memory:MemoryStore",
    "postgres": "lakewright.stores.sql.postgres:PostgresStore",
    "sqlite": "lakewright.stores.sql.sqlite:SqliteStore",
}
"""Class of each kind, imported when it is asked for."""

OPTIONS: Mapping[str, frozenset[str]] = {
    "delta": frozenset({"location"}),
    "dynamodb": frozenset({"table", "region", "endpoint_url"}),
    "memory": frozenset(),
    "postgres": frozenset({"url"}),
    "sqlite": frozenset({"path"}),
}
"""Settings of each kind beside `kind`; they are known before the class is imported."""

NEEDED: Mapping[str, Mapping[str, str]] = {
    "delta": {"location": "Give its table's folder, or a place in object storage."},
    "postgres": {
        "url": "Give url: postgresql://host/database; libpq's environment tells what it leaves out."
    },
}
"""Settings that a project has to give, with the remedy where one doesn't."""

COMMON = SETTINGS | {"kind"}
"""Settings of every kind."""


class StoreKind(Protocol):
    """A class of back end."""

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
    if wrong := [fault for _, fault in _unknown(settings)]:
        raise SpecError(wrong)
    kind = _kind(settings)
    module, _, name = KINDS[kind].partition(":")
    given = {option: value for option, value in settings.items() if option not in COMMON}
    try:
        yield cast("StoreKind", getattr(import_module(module), name)), given
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
            from lakewright.stores.sql.sqlite import SqliteStore
            from lakewright.stores.sql.sqlite_readonly import read_sqlite

            place = SqliteStore.place(given)
            return read_sqlite(place, ask) if place.exists() else ask(MemoryStore())
        seen = found.look(given)
    store = MemoryStore() if isinstance(seen, datetime) else seen
    try:
        return ask(store)
    finally:
        store.close()


def check_manifest(settings: Mapping[str, Any]) -> Iterator[tuple[str, Fault]]:
    """Yield what is wrong with a project's `manifest:`, as far as shows without its back end.

    Args:
        settings: As the project gives them, expressions evaluated.

    Yields:
        The key at which it shows, and the fault.
    """
    yield from _unknown(settings)
    kind = _kind(settings)
    for option, remedy in NEEDED.get(kind, {}).items():
        if settings.get(option) is None:
            yield "kind", Fault(f"a manifest of kind {kind} needs {option!r}", remedy=remedy)
    yield from check_locks_and_history(settings)


def _kind(settings: Mapping[str, Any]) -> str:
    return str(settings.get("kind", "sqlite"))


def _unknown(settings: Mapping[str, Any]) -> Iterator[tuple[str, Fault]]:
    """Yield an unknown kind, or settings that the kind doesn't have, each with its key."""
    kind = _kind(settings)
    if kind not in KINDS:
        why = f"unknown kind {kind!r} of manifest; known: {', '.join(KINDS)}"
        yield "kind", Fault(why, remedy=suggestion(kind, KINDS))
        return
    for option in sorted(settings.keys() - OPTIONS[kind] - COMMON):
        why = f"a manifest of kind {kind} has no setting {option!r}"
        yield option, Fault(why, remedy=suggestion(option, OPTIONS[kind] | COMMON))
