"""The settings of a project's Spark session, and of the session of its tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from lakewright.connections.jdbc import driver_jars
from lakewright.lake.object_storage import ObjectStorage
from lakewright.lake.paths import store_of
from lakewright.lake.table import needs_catalog
from lakewright.spark.conf import CATALOG, SessionSettings, is_connect, master_among, temporary_session_conf
from lakewright.spec.definitions.definition import Definition
from lakewright.spec.project import Project


def settings_of_project(project: Project, environ: Mapping[str, str]) -> SessionSettings:
    """Return the settings of a project's session: its `spark.*` keys, and a Hive catalog if it needs one.

    Spark keeps its state in the project's state folder.
    """
    conf = _spark_config(project)
    master = master_of_project(project, environ)
    if needs_catalog(project) and not is_connect(master):
        conf.setdefault(CATALOG, "hive")
    storage = storage_of_project(project, environ)
    conf |= storage.spark_conf()
    return SessionSettings(
        state_folder(project, environ),
        app_name=f"lakewright {project.name}",
        master=master,
        conf=conf,
        drivers=driver_jars(project),
        stores=tuple(sorted(storage.used)),
        patience=project.cluster.seconds,
        shares_folders=project.cluster.shared,
    )


def master_of_project(project: Project, environ: Mapping[str, str]) -> str:
    """Return where a project's Spark works: a master, or a server of Spark Connect."""
    declared = project.cluster.master or environ.get("SPARK_REMOTE") or "local[*]"
    return master_among(project.config, declared)


def storage_of_project(project: Project, environ: Mapping[str, str]) -> ObjectStorage:
    """Return the object stores that a project declares, or that its lake or an imported one is in."""
    lakes = (project.lake, *(each.lake for each in project.imports.values()))
    places = [lake.root_folder for lake in lakes]
    places += [str((each.raw.get("settings") or {}).get("slices_from", "")) for each in _entities(project)]
    used = frozenset(filter(None, (*project.storage.declared, *map(store_of, places))))
    return ObjectStorage(project.storage, environ, _spark_config(project), used)


def _entities(project: Project) -> Iterator[Definition]:
    for each in (project, *project.imports.values()):
        yield from each.entity_definitions.values()


def _spark_config(project: Project) -> dict[str, str]:
    return {key: value for key, value in project.config.items() if key.startswith("spark.")}


def state_folder(project: Project, environ: Mapping[str, str]) -> Path:
    """Return the folder for what is kept of a project, below `XDG_STATE_HOME` or `~/.local/state`."""
    base = environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    digest = sha256(str(project.basedir.resolve()).encode()).hexdigest()[:12]
    return Path(base) / "lakewright" / f"{project.name}-{digest}"


def settings_of_tests(project: Project, folder: Path) -> SessionSettings:
    """Return the settings of the session of a project's tests, which keeps everything below `folder`."""
    return SessionSettings(
        folder / "session",
        app_name="lakewright test",
        conf=temporary_session_conf(project.config),
        drivers=driver_jars(project),
    )
