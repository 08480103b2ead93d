"""Slices that a replay could not apply: a plan asks what to do about them, and does not try them again.

The manifest's record of such a slice stays as it is, for the table still holds what it held. What is kept
beside it is the content and the declaration with which it failed; with others it is tried again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lakewright.errors import LakewrightError
from lakewright.manifest.journal import UNFIT
from lakewright.manifest.store import Put, Write
from lakewright.slices.replay_slices import UNFIT_SLICE

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.spec.models.entity import Entity

__all__ = ["UnfitSlices", "clear_unfit", "declared_digest", "recording_unfit"]


def declared_digest(entity: Entity) -> str:
    """Return a digest of all that an entity declares."""
    return hashlib.sha256(entity.model_dump_json().encode()).hexdigest()[:12]


@dataclass
class UnfitSlices:
    """The slices of all entities that a replay could not apply, read from the manifest once."""

    app: App

    @cached_property
    def _values(self) -> Mapping[str, Mapping[str, Any]]:
        prefix = f"{self.app.project.name}/"
        return {each.key: each.value for each in self.app.store.documents(UNFIT, prefix=prefix)}

    def of(self, entity: Entity) -> Mapping[str, Mapping[str, Any]]:
        """Return how slices of an entity failed: `fingerprint`, `declared`, `attempt`, `error` by name."""
        prefix = _prefix(self.app, entity)
        return {
            key.removeprefix(prefix): each for key, each in self._values.items() if key.startswith(prefix)
        }


@contextmanager
def recording_unfit(app: App, entity: Entity) -> Iterator[None]:
    """Record the slice that is at fault if a replay in the block fails by one."""
    try:
        yield
    except LakewrightError as error:
        if (found := error.details.get(UNFIT_SLICE)) is not None:
            value = {
                "fingerprint": found["fingerprint"],
                "declared": declared_digest(entity),
                "attempt": app.run_id,
                "error": app.redactor.value(error.as_fault().as_record()),
            }
            app.store.write(Write(puts=(Put(UNFIT, f"{_prefix(app, entity)}{found['slice']}", value),)))
        raise


def clear_unfit(app: App, entity: Entity, names: Iterable[str]) -> None:
    """Record that slices were applied."""
    known = UnfitSlices(app).of(entity)
    puts = tuple(Put(UNFIT, f"{_prefix(app, entity)}{name}", None) for name in names if name in known)
    if puts:
        app.store.write(Write(puts=puts))


def _prefix(app: App, entity: Entity) -> str:
    return f"{app.project.name}/{entity.called}/"
