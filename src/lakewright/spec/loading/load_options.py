"""What a load of a project is given beside the project's folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakewright.spec.definitions.registry import Registry
from lakewright.spec.expressions.functions import EvaluationContext
from lakewright.spec.loading.settings import Check

__all__ = ["LoadOptions", "read_text"]

LARGEST_SECRET = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """The options of a load. See `load_project`.

    Attributes:
        importing: Folders of the projects whose imports lead to this one.
        on_read: Receives each file and folder that the load reads or looks for.
        despite_faults: Whether definitions that no fault touches are loaded although others are faulty.
        checks_only: Whether they are loaded even if a fault may concern the whole project.
    """

    kinds: Registry
    context: EvaluationContext
    profiles: Sequence[str] = ()
    definitions: Mapping[str, str]
    config: Mapping[str, str]
    check_manifest: Check
    overrides: Path | None = None
    importing: tuple[Path, ...] = ()
    on_read: Callable[[Path], None] = lambda _: None
    despite_faults: bool = False
    checks_only: bool = False


def read_text(on_read: Callable[[Path], None], path: str) -> str:
    """Return the text of a file, or an empty text if it does not exist, like Flowman."""
    file = Path(path)
    on_read(file.absolute())
    if not file.is_file():
        return ""
    if file.stat().st_size > LARGEST_SECRET:
        raise ValueError(f"{path!r} has more than {LARGEST_SECRET} bytes")
    return file.read_text(encoding="utf-8")
