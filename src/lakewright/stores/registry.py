"""Opening the back end that a project's `manifest:` section names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast

from lakewright.errors import Fault, NotInstalled, SpecError
from lakewright.manifest.settings import SETTINGS, check_locks_and_history
from lakewright.manifest.store import Store
from lakewright.spec.suggestions import suggestion
from lakewright.stores.backend import Backend
from lakewright.stores.deferred_store import DeferredStore

T = TypeVar("T")

KINDS: Mapping[str, str] = {
    "delta": "lakewright.stores.delta.backend:DeltaBackend",
    "dynamodb": "lakewright.stores.dynamodb.backend:DynamoDbBackend",
    "memory": "lakewright.stores.backend:MemoryBackend",
    "postgres": "lakewright.stores.postgres.backend:PostgresBackend",
    "sqlite": "lakewright.stores.sqlite.backend:SqliteBackend",
}
"""The class of each kind, imported on first use."""

DEFAULT_KIND = "sqlite"

COMMON = SETTINGS | {"kind"}
"""Settings of every kind."""


def kind_class(kind: str) -> type[Backend]:
    """Return the class of a known kind."""
    module, _, name = KINDS[kind].partition(":")
    return cast("type[Backend]", getattr(import_module(module), name))


def resolve_settings(
    settings: Mapping[str, Any],
    folder: Path,
    storage_options: Callable[[str], Mapping[str, str]] = lambda _: {},
) -> dict[str, Any]:
    """Return a project's `manifest:` with its defaults, relative paths joined to the project's folder.

    Args:
        settings: As the project gives them, with expressions evaluated.
        folder: The project's folder.
        storage_options: Returns the settings for the `deltalake` package to reach a location.
    """
    kind = _kind(settings)
    known = {**settings, "kind": kind}
    is_open = kind == "delta" and "storage_options" not in settings
    if is_open and (found := storage_options(str(settings.get("location")))):
        known["storage_options"] = dict(found)
    return kind_class(kind).resolve(known, folder)


def select_backend(settings: Mapping[str, Any]) -> Backend:
    """Return the back end that settings name; its driver is not imported yet.

    Args:
        settings: `kind` (default `sqlite`) and the settings that the kind takes: `path` of sqlite, absolute
            or relative to the current folder; `url` of postgres; `table`, `region` and `endpoint_url` of
            dynamodb; `location` of delta.

    Raises:
        SpecError: The kind is unknown, or does not take one of the settings.
    """
    if wrong := [fault for _, fault in _unknown(settings)]:
        raise SpecError(wrong)
    return kind_class(_kind(settings))(_own(settings))


def open_store(settings: Mapping[str, Any]) -> Store:
    """Return the store that settings name, ready for use; the manifest is created if it does not exist.

    Args:
        settings: See `select_backend`.

    Raises:
        SpecError: The kind is unknown, or does not take one of the settings.
        NotInstalled: A driver is missing, or the manifest was written by a newer version of Lakewright.
        StoreUnavailable: The back end cannot be reached or written.
    """
    with _opening(settings) as backend:
        return backend.open()


def open_lazily(settings: Mapping[str, Any]) -> Store:
    """Return the store that settings name; a manifest that does not exist is created by the first write.

    Args:
        settings: See `select_backend`.

    Raises:
        SpecError, NotInstalled, StoreUnavailable: See `open_store`.
    """
    with _opening(settings) as backend:
        existing = backend.open_existing()
        return DeferredStore(backend) if isinstance(existing, datetime) else existing


def read_store(settings: Mapping[str, Any], ask: Callable[[Store], T]) -> T:
    """Return the result of `ask`; no manifest is created, and a manifest in a file is not written to.

    Args:
        settings: See `select_backend`.
        ask: Only reads.

    Raises:
        SpecError, NotInstalled, StoreUnavailable: See `open_store`.
    """
    with _opening(settings) as backend:
        return backend.read(ask)


@contextmanager
def _opening(settings: Mapping[str, Any]) -> Iterator[Backend]:
    """Yield the back end; a missing driver is reported with the command that installs it."""
    backend = select_backend(settings)
    try:
        yield backend
    except ModuleNotFoundError as missing:
        kind = _kind(settings)
        raise NotInstalled.of(missing, f"a manifest of kind {kind}", kind) from missing


def check_manifest(settings: Mapping[str, Any], *, needs_sharing: bool) -> Iterator[tuple[str, Fault]]:
    """Yield the faults of a project's `manifest:` that can be found without opening its back end.

    Args:
        settings: As the project gives them, with expressions evaluated.
        needs_sharing: Whether the lake can be written from several machines.

    Yields:
        The key that is at fault, and the fault.
    """
    yield from _unknown(settings)
    kind = _kind(settings)
    required = kind_class(kind).required if kind in KINDS else {}
    for option, remedy in required.items():
        if settings.get(option) is None:
            yield "kind", Fault(f"a manifest of kind {kind} needs {option!r}", remedy=remedy)
    if needs_sharing and kind in KINDS and not kind_class(kind)(_own(settings)).is_shared:
        yield "kind", _not_shared(kind)
    yield from check_locks_and_history(settings)


def _own(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {option: value for option, value in settings.items() if option not in COMMON}


def _not_shared(kind: str) -> Fault:
    return Fault(
        f"a manifest of kind {kind} is on one machine, but the lake is not: another machine could process "
        "the same slices again",
        remedy="Choose postgres, dynamodb or delta (with a location in the same store), or declare "
        "`storage: {single_driver: true}` if only one process at a time ever writes to the lake.",
    )


def _kind(settings: Mapping[str, Any]) -> str:
    return str(settings.get("kind", DEFAULT_KIND))


def _unknown(settings: Mapping[str, Any]) -> Iterator[tuple[str, Fault]]:
    """Yield an unknown kind, or each setting that the kind does not take, with its key."""
    kind = _kind(settings)
    if kind not in KINDS:
        why = f"unknown kind {kind!r} of manifest; known: {', '.join(KINDS)}"
        yield "kind", Fault(why, remedy=suggestion(kind, KINDS))
        return
    taken = kind_class(kind).options | COMMON
    for option in sorted(settings.keys() - taken):
        why = f"a manifest of kind {kind} has no setting {option!r}"
        yield option, Fault(why, remedy=suggestion(option, taken))
