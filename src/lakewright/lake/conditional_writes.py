"""Whether an object store honours conditional writes, without which two drivers lose each other's commits."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from lakewright.errors import SpecError
from lakewright.lake.object_storage import ObjectStorage
from lakewright.lake.paths import split_url

__all__ = ["check_conditional_writes", "try_writes"]

_FOLDER = ".lakewright"
"""Folder in the lake for the object that is written twice."""


def check_conditional_writes(storage: ObjectStorage, location: str, state_folder: Path) -> None:
    """Raise an error if the store lets two writers create the same object.

    It is asked by creating an object twice, which the second time must be refused. The answer is kept in the
    project's state folder, so that a store is asked once.

    Args:
        storage: The project's object stores.
        location: The lake's location.
        state_folder: Where what is known of the project is kept.

    Raises:
        SpecError: The store creates the object twice.
        StorageUnavailable: The store can't be reached, or refuses to write.
    """
    if storage.settings.single_driver:
        return
    name, _ = split_url(location)
    known = state_folder / "conditional_writes" / f"{storage.endpoint_url or 'aws'}/{name}".replace("/", "_")
    if known.exists():
        return
    try_writes(storage, location)
    known.parent.mkdir(parents=True, exist_ok=True)
    known.touch()


def try_writes(storage: ObjectStorage, location: str) -> None:
    """Raise an error if no object can be created and removed at a location, or if it can be created twice.

    Raises:
        SpecError: The store creates the object twice, and the project doesn't declare a single driver.
        StorageUnavailable: The store can't be reached, or refuses to write or to remove.
    """
    name, key = split_url(location)
    bucket = storage.bucket(name)
    probe = f"{key}/{_FOLDER}/probe-{uuid4()}".lstrip("/")
    bucket.put_if_absent(probe, b"first")
    try:
        is_refused = not bucket.put_if_absent(probe, b"second")
    finally:
        bucket.remove([probe])
    if not is_refused and not storage.settings.single_driver:
        raise SpecError.of(
            f"the store of s3://{name} ignores `If-None-Match`: two drivers would lose each other's commits",
            remedy="Use a version of the store with conditional writes, or declare "
            "`storage: {single_driver: true}` if only one process at a time ever writes to the lake.",
        )
