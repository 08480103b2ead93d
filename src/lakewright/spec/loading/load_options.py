"""What a load of a project is given beside the project's folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from lakewright.spec.definitions.registry import Registry
from lakewright.spec.loading.settings import Check, unchecked

LARGEST_SECRET = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """The options of a load.

    Attributes:
        kinds: The supported kinds.
        environ: Environment variables, for `System.getenv`.
        clock: Returns the current time, for `LocalDate.today()` and the like.
        profiles: Names of profiles to activate; later ones override earlier ones. Profiles that are declared
            `enabled` are always active.
        definitions: Names and texts of `-D`, which override environments.
        config: Configuration of `--conf`, which overrides the project's.
        check_manifest: Returns the faults of the `manifest:` section, whose kinds are unknown here.
        overrides: The folder whose `.flowman-env.yml` overrides environments and configuration, as far as
            `definitions` and `config` don't.
        on_read: Receives each file and folder that the load reads, also those that do not exist: if none of
            them changes, neither does the project.
        despite_faults: Leave out the definitions that faults touch, and keep the others, unless a fault
            may concern the whole project. `Project.faults` has the faults.
        checks_only: Do so even if a fault may concern the whole project, for further checks of the others.
        importing: Folders of the projects whose imports lead to this one.
    """

    kinds: Registry
    environ: Mapping[str, str]
    clock: Callable[[], datetime] | None = None
    profiles: Sequence[str] = ()
    definitions: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    check_manifest: Check = unchecked
    overrides: Path | None = None
    on_read: Callable[[Path], None] = lambda _: None
    despite_faults: bool = False
    checks_only: bool = False
    importing: tuple[Path, ...] = ()


def read_text(on_read: Callable[[Path], None], path: str) -> str:
    """Return the text of a file, or an empty text if it does not exist, like Flowman."""
    file = Path(path)
    on_read(file.absolute())
    if not file.is_file():
        return ""
    if file.stat().st_size > LARGEST_SECRET:
        raise ValueError(f"{path!r} has more than {LARGEST_SECRET} bytes")
    return file.read_text(encoding="utf-8")
