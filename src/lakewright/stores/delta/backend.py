"""The kind `delta`: a Delta table, for projects that have only object storage."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from lakewright.errors import SpecError
from lakewright.manifest.store import Store
from lakewright.stores.backend import Backend, may_write


class DeltaBackend(Backend):
    """A Delta table at `location`: a local folder or the URL of a place in object storage.

    `storage_options` are those of the `deltalake` package; a project's come from its `storage:` section.
    """

    options = frozenset({"location", "storage_options"})
    required: ClassVar[Mapping[str, str]] = {
        "location": "Give its table's folder, or a place in object storage."
    }

    @classmethod
    def resolve(cls, settings: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        location = str(settings.get("location") or "")
        if not location or "://" in location:
            return dict(settings)
        return {**settings, "location": str(folder / location)}

    @property
    def is_shared(self) -> bool:
        """Whether it is in object storage."""
        return "://" in str(self.settings.get("location"))

    @property
    def location(self) -> str:
        """The table's location; a local folder as an absolute path.

        Raises:
            SpecError: No location is given, or a part of its path is a file.
        """
        location = str(self.settings.get("location") or "")
        if not location:
            raise SpecError.of(
                "the manifest in Delta has no location",
                remedy="Set `manifest: {location: …}` to a folder, or to a place in object storage.",
            )
        if "://" in location:
            return location
        folder = Path(location).absolute()
        if file := next((place for place in (folder, *folder.parents) if place.is_file()), None):
            raise SpecError.of(
                f"{file} is a file, and the manifest in Delta needs a folder",
                remedy="Set `manifest: {location: …}` to another place.",
            )
        return str(folder)

    @property
    def local_place(self) -> Path | None:
        return None if self.is_shared else Path(self.location)

    @property
    def is_writable(self) -> bool | None:
        """Whether this user may write to the table's folder and its log; None in object storage."""
        place = self.local_place
        return None if place is None else may_write(place, place / "_delta_log")

    def open(self) -> Store:
        from lakewright.stores.delta.store import DeltaStore

        return DeltaStore(self.location, storage_options=self._storage_options)

    def open_existing(self) -> Store | datetime:
        from lakewright.stores.delta.store import DeltaStore

        return DeltaStore.open_existing(self.location, storage_options=self._storage_options)

    @property
    def _storage_options(self) -> Mapping[str, str]:
        options: Mapping[str, str] = self.settings.get("storage_options") or {}
        return options
