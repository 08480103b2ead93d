"""The command line in a worker of the server, whose modules its host has imported."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from lakewright.cli import entry
from lakewright.cli.call import open_app
from lakewright.cli.options import Settings, global_arguments
from lakewright.errors import NotInstalled
from lakewright.spark.connect import ConnectSessions
from lakewright.spark.launch import import_engine
from lakewright.spark.releases import installed_version

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.spark.resident import AttachedSession
    from lakewright.spec.project import Project
    from lakewright.warm.worker import FollowUp


log = logging.getLogger(__name__)

MODULES = (
    "encodings.ascii",
    "encodings.utf_8_sig",
    "pandas",
    "psutil",
    "pyspark.logger.worker_io",
    "pyspark.testing",
    "rich.live",
    "sqlalchemy.dialects.sqlite",
)
"""What commands import when they need it, besides Lakewright's own modules and the engine."""

NOT_IMPORTED = (
    "lakewright.serve",
    "lakewright.stores.delta",
    "lakewright.stores.dynamodb",
    "lakewright.stores.postgres",
    "lakewright.warm",
)
"""Packages that most commands don't need, or that import large ones."""

_RELATIVE = re.compile(
    r"(?:\.|\blocation\s+)\s*[`'\"](?!/|[a-z0-9]+:/)[^`'\"]*[./][^`'\"]*[`'\"]", re.IGNORECASE
)
"""A path in SQL that is relative: csv.`some/file.csv`, or LOCATION 'some/folder'."""


def run(arguments: Sequence[str], sessions: AttachedSession) -> tuple[int, tuple[FollowUp, ...]]:
    """Run a command line on these sessions; return its exit code, and the maintenance that is due since."""
    due: dict[str, Settings] = {}
    code = entry.main(arguments, opener=partial(_open, arguments=arguments, attached=sessions, due=due))
    return code, tuple(partial(_maintain, name, settings, sessions) for name, settings in due.items())


def _maintain(entity: str, settings: Settings, sessions: AttachedSession) -> None:
    """Maintain an entity's table as the command does; the server's log has what it prints."""
    options = ("--despite-faults",) if settings.despite_faults else ()
    arguments = (*global_arguments(settings), "maintain", entity, *options)
    entry.main(arguments, opener=partial(open_app, sessions=sessions))


def _open(
    settings: Settings,
    environ: Mapping[str, str],
    say: Callable[[str], None],
    *,
    arguments: Sequence[str],
    attached: AttachedSession,
    due: dict[str, Settings],
    **more: Any,
) -> App:
    """Open the project on attached sessions, unless it has a server, or the JVM's folder makes a difference.

    Entities whose tables are due for maintenance are added to `due`, as another command maintains them.
    """
    app = open_app(settings, environ, say, **more)
    if isinstance(app.sessions, ConnectSessions):
        return app
    if Path.cwd() != attached.folder and _reads_relative_paths(app.project, arguments):
        log.info(
            "Spark starts in a JVM of its own, not in the server's: relative paths begin in %s", Path.cwd()
        )
    else:
        app.sessions = attached
        app.maintain_later = lambda entity: due.update({entity: settings})
    return app


def _reads_relative_paths(project: Project, arguments: Sequence[str]) -> bool:
    """Return whether SQL of the user's, or code of the project, may give Spark a path without a folder."""
    if any(raw.kind == "python" for raw in project.mappings.values()):
        return True
    return any(_RELATIVE.search(argument) for argument in arguments)


def preload() -> None:
    """Import what commands import, and start no thread that outlives it.

    A worker that imports nothing saves a quarter of a second of processor time.
    """
    import_engine()
    for name in MODULES:
        with suppress(ImportError):
            import_module(name)
    _import_all("lakewright")
    with suppress(NotInstalled):  # as above: what is missing is said where it is used
        installed_version()  # reading the version of a package imports more since Python 3.12


def _import_all(package: str) -> None:
    """Import a package with all its modules, but for those that lack a dependency."""
    for found in iter_modules(import_module(package).__path__, f"{package}."):
        if found.name in NOT_IMPORTED or found.name.endswith(".__main__"):
            continue
        with suppress(ImportError):
            import_module(found.name)
            if found.ispkg:
                _import_all(found.name)
