"""Draft a project from files that are there: their entities, with what only a person knows as questions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakewright.errors import UsageError
from lakewright.lake.files import LocalFiles
from lakewright.lake.object_storage import ObjectStorage
from lakewright.lake.paths import is_stored, local_path
from lakewright.profiling.places import Skipped, look_at_place
from lakewright.profiling.profile import Profile, profile_places
from lakewright.profiling.project_text import project_text
from lakewright.slices.discovery import item_id
from lakewright.spec.reading.files import PROJECT_FILE, PROJECT_FILES
from lakewright.spec.words import first_of

_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Draft:
    """A project that was written.

    Attributes:
        file: Its file.
        profile: What it was made from.
    """

    file: Path
    profile: Profile

    def as_json(self) -> dict[str, Any]:
        """Return the document that `init --from -o json` prints."""
        return {
            "folder": str(self.file.parent),
            "files": 1,
            "entities": [each.as_json() for each in self.profile.entities],
            "skipped": _skipped(self.profile.skipped),
            "questions": [each.as_json() for each in self.profile.questions],
            "further_questions": self.profile.further,
        }


def draft_project(places: Sequence[str], folder: Path, environ: Mapping[str, str]) -> Draft:
    """Write a project for the files at some places; nothing is written into these, nor if it can't be made.

    Args:
        places: Folders or files of this machine or in S3.
        folder: The folder of the project, which may have other files already.
        environ: The environment, with the credentials of object stores.

    Raises:
        UsageError: The folder has a project, or is one of the places; or no file there has rows.
        StorageUnavailable: A place can't be listed.
    """
    folder = folder.resolve() if ".." in folder.parts else folder.absolute()
    check_folder(folder, places)
    storage = ObjectStorage(environ=environ)
    outer = [place for place in dict.fromkeys(places) if not _is_in_another(place, places)]
    profile = profile_places([look_at_place(place, storage) for place in outer])
    if not profile.entities:
        raise _without_entities(places, profile.skipped)
    file = folder / PROJECT_FILE
    LocalFiles().write(str(file), project_text(project_name(folder), profile, folder).encode())
    return Draft(file, profile)


def check_folder(folder: Path, places: Sequence[str] = ()) -> None:
    """Raise `UsageError` if a project can't be written into a folder, or would be into one of the places."""
    if folder.exists() and not folder.is_dir():
        raise _refusal(f"{folder} is not a folder")
    if found := next((name for name in PROJECT_FILES if (folder / name).exists()), None):
        raise _refusal(f"{folder} has a project already: {found}")
    for place in places:
        local = None if is_stored(place) else local_path(place)
        if local is not None and local.is_dir() and folder.resolve().is_relative_to(local.resolve()):
            raise _refusal(f"{folder} is in {place}, into which nothing is written")


def _is_in_another(place: str, places: Sequence[str]) -> bool:
    """Return whether all that is at a place is at another one too."""
    ids = {item_id(each) for each in places} - {item_id(place)}
    return any(item_id(place).startswith(f"{each}/") for each in ids)


def _refusal(why: str) -> UsageError:
    return UsageError(f"{why}; nothing was written", remedy="Name another folder for the project.")


def _without_entities(places: Sequence[str], skipped: Sequence[Skipped]) -> UsageError:
    reasons = [f"{each.name}: {each.reason.text}" for each in skipped]
    why = f" ({first_of(reasons, _MOST_NAMED, '; ')})" if reasons else ", which is empty"
    return UsageError(
        f"no file with rows was found at {', '.join(places)}{why}; nothing was written",
        remedy="Name a folder with files of CSV, JSON, Parquet, Avro or ORC.",
        details={"skipped": _skipped(skipped)},
    )


def _skipped(skipped: Sequence[Skipped]) -> list[dict[str, Any]]:
    return [{"name": each.name, **each.reason.as_json()} for each in skipped]


def project_name(folder: Path) -> str:
    """Return the name of a project that is drafted into a folder."""
    return re.sub(r"\W+", "_", folder.name).strip("_") or "lake"
