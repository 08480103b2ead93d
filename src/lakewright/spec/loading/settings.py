"""The options of a load, and a project's settings, merged with its profiles: environment, lake and so on.

The configuration has entries of Spark, of Lakewright, and some that only Flowman knows.

Source: the project files' rules, "Configuration"; Flowman's documentation, "Namespaces" and "Metrics".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pydantic import ValidationError

from lakewright.errors import Fault, Location, SpecError
from lakewright.errors.phrase import Command, Option, Phrase
from lakewright.spec.definitions.definition import faults_of, render_tree
from lakewright.spec.definitions.registry import Registry
from lakewright.spec.expressions.expression import names_used
from lakewright.spec.expressions.scope import Entry, Scope
from lakewright.spec.models.base import SnakeModel
from lakewright.spec.models.lake import PATH_TEMPLATES, LakeSettings, TableOutput
from lakewright.spec.models.project_file import ApplySettings, ClusterSettings
from lakewright.spec.models.storage import StorageSettings
from lakewright.spec.reading.files import PROJECT_FILE
from lakewright.spec.reading.parsed_file import Node, ParsedFile, nodes_in
from lakewright.spec.reading.sections import Profile, Sections
from lakewright.spec.suggestions import meant, suggestion

LARGEST_SECRET = 1_000_000

DEFAULT_ROOT = "lake"
"""The folder of the lake, in that of the project, unless one is declared."""

M = TypeVar("M", bound=SnakeModel)

Places = Mapping[str, Location | None]


class Check(Protocol):
    """Finds the faults of a manifest's settings."""

    def __call__(self, settings: Mapping[str, Any], /, *, needs_sharing: bool) -> Iterable[tuple[str, Fault]]:
        """Return the faults, each with the key that is invalid.

        Args:
            settings: The `manifest:` section, with expressions evaluated.
            needs_sharing: Whether the lake can be written from several machines.
        """
        ...


def unchecked(_: Mapping[str, Any], /, *, needs_sharing: bool) -> Iterable[tuple[str, Fault]]:
    """Return no faults."""
    del needs_sharing
    return ()


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


def active_profiles(
    sections: Sections, wanted: Sequence[str], *, is_imported: bool = False
) -> tuple[Profile, ...]:
    """Return the active profiles, after the project itself. Later ones override earlier ones.

    A wanted profile that is not declared is a fault, unless the project is imported: then the importing
    project has it.
    """
    for name in wanted:
        if name not in sections.profiles and not is_imported:
            remedy = suggestion(name, sections.profiles) or "The project declares no profiles."
            sections.fault(f"there is no profile {name!r}", Location(PROJECT_FILE), remedy)
    enabled = [
        name for name, profile in sections.profiles.items() if profile.is_enabled and name not in wanted
    ]
    active = (sections.profiles[name] for name in (*enabled, *wanted) if name in sections.profiles)
    return (sections.project, *active)


def merged_environment(profiles: Sequence[Profile]) -> dict[str, Entry]:
    """Return the environment of the project, merged with the active profiles."""
    return {key: setting for profile in profiles for key, setting in profile.environment.items()}


def read_own_config(
    profiles: Sequence[Profile], given: Mapping[str, str], scope: Scope, sections: Sections
) -> dict[str, str]:
    """Return the configuration. Entries of the command line override declared ones."""
    settings = {key: setting for profile in profiles for key, setting in profile.config.items()}
    declared = {
        key: replace(setting, text=str(_rendered(setting.text, setting, scope, sections)))
        for key, setting in settings.items()
    }
    whole = read_config(declared, sections)
    whole |= read_config({key: Entry(text) for key, text in given.items()}, sections)
    _apply_executor(whole, {key: setting.location for key, setting in settings.items()}, sections)
    return whole


def _apply_executor(config: dict[str, str], places: Places, sections: Sections) -> None:
    """Replace Flowman's executor and its parallelism by ours; only Flowman's parallel executor has one."""
    name = config.pop(FLOWMAN + EXECUTOR, SIMPLE)
    asked = config.pop(FLOWMAN + PARALLELISM, None)
    if name.rpartition(".")[2] == PARALLEL:
        config.setdefault(OWN + PARALLELISM, asked or PARALLEL_JOBS)
    elif name.rpartition(".")[2] != SIMPLE:
        why = f"the configuration {FLOWMAN + EXECUTOR!r} has no effect: there is no executor {name!r}"
        remedy = f"Use {SIMPLE} or {PARALLEL}, or -j N."
        sections.warn(why, places.get(FLOWMAN + EXECUTOR), remedy)
    elif asked is not None:
        why = f"the configuration {FLOWMAN + PARALLELISM!r} has no effect without the class {PARALLEL}"
        remedy = f"Set {FLOWMAN + EXECUTOR}=com.dimajix.flowman.execution.{PARALLEL}, or {OWN + PARALLELISM}."
        sections.warn(why, places.get(FLOWMAN + PARALLELISM), remedy)


class _Keys:
    """The keys of a section, of the project and its profiles, with expressions evaluated.

    Attributes:
        values: The values, by key.
        is_rendered: Whether all expressions could be evaluated.
    """

    def __init__(
        self, name: str, profiles: Sequence[Profile], scope: Scope, sections: Sections, *kept: str
    ) -> None:
        self._name, self._sections = name, sections
        inherited = sections.foundation if name == "lake" else {}
        self._entries = {**inherited, **{k: each for p in profiles for k, each in p.keyed[name].items()}}
        present = len(sections.faults)
        self.values = {
            key: node.value if key in kept else _rendered(node.value, node, scope, sections)
            for key, node in self._entries.items()
        }
        self.is_rendered = len(sections.faults) == present

    def at(self, path: tuple[str | int, ...]) -> Location:
        """Return the location of a key, or else of the section."""
        key = path[0] if path and path[0] in self._entries else next(iter(self._entries), None)
        return Location(PROJECT_FILE) if key is None else self._entries[str(key)].location

    def read(self, model: type[M]) -> M | None:
        """Return the settings, or None if they are invalid; the faults are added to the others."""
        try:
            return model.model_validate(self.values)
        except ValidationError as error:
            self._sections.faults += faults_of(error, self._name, self.at, is_rendered=self.is_rendered)
            return None


def read_manifest(
    profiles: Sequence[Profile], scope: Scope, sections: Sections, check: Check, *, needs_sharing: bool
) -> dict[str, Any]:
    """Return the `manifest:` section with evaluated expressions, checked if they could be evaluated."""
    keys = _Keys("manifest", profiles, scope, sections)
    for key, fault in check(keys.values, needs_sharing=needs_sharing) if keys.is_rendered else ():
        sections.faults.append(replace(fault, location=keys.at((key,))))
    return keys.values


def read_lake(
    profiles: Sequence[Profile], scope: Scope, sections: Sections, basedir: Path
) -> LakeSettings | None:
    """Return the settings of the lake, or None if they are invalid.

    The `lake:` section overrides Datalake Foundation's `environment`. A relative root folder starts at the
    project's folder.
    """
    keys = _Keys("lake", profiles, scope, sections, *PATH_TEMPLATES)
    root = keys.values.get("root_folder") or DEFAULT_ROOT
    if isinstance(root, str) and "://" not in root and not root.startswith("file:"):
        keys.values["root_folder"] = str(basedir / root)
    local = str(keys.values.get("root_folder") or "").removeprefix("file:")
    if local and "://" not in local and Path(local).is_file():
        remedy = "Name a folder; it is made if it does not exist."
        sections.fault(f"lake: root_folder is a file: {local}", keys.at(("root_folder",)), remedy)
    lake = keys.read(LakeSettings)
    if lake is not None and lake.bronze_output is TableOutput.CATALOG:
        remedy = "Slices are files or folders below the bronze path. Put them there."
        why = "lake: bronze_output: catalog has no effect"
        sections.warn(why, keys.at(("bronze_output",)), remedy)
    return lake


def read_storage(profiles: Sequence[Profile], scope: Scope, sections: Sections) -> StorageSettings:
    """Return the settings of the object stores, or the defaults if they are invalid."""
    return _Keys("storage", profiles, scope, sections).read(StorageSettings) or StorageSettings()


def read_apply(profiles: Sequence[Profile], scope: Scope, sections: Sections) -> ApplySettings:
    """Return what `apply` may always do, or the defaults if the section is invalid."""
    return _Keys("apply", profiles, scope, sections).read(ApplySettings) or ApplySettings()


def read_cluster(
    profiles: Sequence[Profile], scope: Scope, sections: Sections, config: Mapping[str, str]
) -> ClusterSettings:
    """Return the settings of the cluster, or the defaults if they are invalid.

    If the configuration names another master, it wins, with a warning.
    """
    keys = _Keys("cluster", profiles, scope, sections)
    found = keys.read(ClusterSettings) or ClusterSettings()
    named = config.get("spark.master")
    if found.master and named is not None and named != found.master:
        why = f"cluster: master {found.master} has no effect: the configuration has spark.master={named}"
        sections.warn(why, keys.at(("master",)), "Name one of them.")
    return found


def _rendered(value: Any, place: Node | Entry, scope: Scope, sections: Sections) -> Any:
    def report(error: SpecError, path: tuple[str | int, ...]) -> None:
        del path
        fault = error.faults[0]
        sections.fault(fault.message, fault.location or place.location, fault.remedy)

    return render_tree(value, scope.render, report)


OWN = "lakewright."
FLOWMAN = "flowman."
SPARK = "spark."

EXECUTOR = "execution.executor.class"
PARALLELISM = "execution.executor.parallelism"
SIMPLE, PARALLEL = "SimpleExecutor", "ParallelExecutor"
"""Names of Flowman's executors, without their package."""
PARALLEL_JOBS = "4"
"""How many targets Flowman's parallel executor runs at once by default."""

SERVE, SERVE_CHOICES = "serve", ("never", "auto")

SETTINGS = frozenset(
    (
        "bronze.settle",
        "default.relation.migrationPolicy",
        "default.relation.migrationStrategy",
        "default.target.buildPolicy",
        "default.target.outputMode",
        "default.target.parallelism",
        "default.target.rebalance",
        "default.target.verifyPolicy",
        PARALLELISM,
        "execution.target.forceDirty",
        "metrics.json",
        "metrics.prometheus",
        "metrics.pushgateway",
        "openlineage.namespace",
        "openlineage.url",
        SERVE,
        "spark.enableHive",
    )
)
"""Known keys, without their prefix `lakewright.` or `flowman.`."""


def read_config(entries: Mapping[str, Entry], sections: Sections) -> dict[str, str]:
    """Return the effective entries, and add the faults and warnings of the others.

    Known keys with the prefix `flowman.` become keys with `lakewright.`; if both exist, `lakewright.` wins.
    Other `flowman.` keys have no effect and give a warning. The keys of Flowman's executor stay as they are.
    """
    found: dict[str, str] = {}
    for key, entry in entries.items():
        value, location = entry.text, entry.location
        if key.startswith(FLOWMAN):
            own = key.removeprefix(FLOWMAN)
            if own in (EXECUTOR, PARALLELISM):
                found[key] = value
            elif own in SETTINGS:
                found.setdefault(OWN + own, value)
            else:
                sections.warn(f"the configuration {key!r} has no effect", location, _near(own, FLOWMAN))
        elif key.startswith(OWN) and key.removeprefix(OWN) not in SETTINGS:
            near = _near(key.removeprefix(OWN), OWN)
            sections.fault(f"unknown configuration {key!r}", location, near)
        elif key == OWN + SERVE and value not in SERVE_CHOICES:
            wanted = " or ".join(SERVE_CHOICES)
            sections.fault(f"{key} is {value!r}; it is {wanted}", location, f"Write {wanted}.")
        elif key.startswith((OWN, SPARK)):
            found[key] = value
        else:
            why = f"the configuration {key!r} has no effect: keys start with spark. or lakewright."
            sections.warn(why, location)
    return found


def _near(name: str, prefix: str) -> str | None:
    return suggestion(prefix + name, [prefix + known for known in SETTINGS])


_NAMED = re.compile(r"^\s*(\w+)\s*=")


def unused_values(
    given: Iterable[str], declared: Iterable[str], documents: Iterable[ParsedFile]
) -> Iterator[Fault]:
    """Yield a warning for each name that no environment, parameter or expression has.

    Args:
        given: The names of `-D`.
        declared: The names of the environment, of which the most similar one is suggested.
        documents: The project's files; texts of files that they refer to, such as SQL, are not looked at.
    """
    missing = set(given)
    for document in documents if missing else ():
        missing -= set(_names(document.value))
    known = list(declared)
    for name in sorted(missing):
        yield Fault(
            f"-D {name}=…: no environment, parameter or expression in the project's files has this name",
            remedy=meant(name, known) or "Declare it in an environment if only a file of SQL uses it.",
        )


def _names(content: Any) -> Iterator[str]:
    """Yield what may be the name of a value: keys, texts of `name:`, `name=…`, and names in expressions."""
    for path, value in nodes_in(content):
        if isinstance(value, dict):
            yield from value
        elif isinstance(value, str):
            yield from (value,) if path[-1:] == ("name",) else ()
            yield from _NAMED.findall(value)
            yield from names_used(value)


# What the file of a Flowman namespace declares has no effect; warnings say what to use.
_SINKS = {
    "console": Phrase(
        "The history has the metrics of each run: ",
        Command("history", "show", "RUN", "-o", "json"),
        ". `lakewright.metrics.json` in `config` writes them to a file.",
    ),
    "jdbc": "Set `lakewright.metrics.json` in `config` and load the file into the database, or let a hook of "
    "kind `jdbc` insert a row for each phase or target.",
    "prometheus": "Set `lakewright.metrics.pushgateway` in `config` to the URL of the push gateway.",
}
_OTHER_SINK = "`lakewright.metrics.json`, `.prometheus` and `.pushgateway` in `config` say where metrics go."

_OF_NAMESPACE = {
    "catalog": "Tables of Hive are found in the metastore that `config` names.",
    "catalogs": "Tables of Hive are found in the metastore that `config` names.",
    "config": "Move the entries to `config` of a module.",
    "connections": "Move them to `connections` of a module.",
    "environment": "Move the entries to `environment` of a module.",
    "history": Phrase("The manifest keeps the history of all runs: ", Command("history"), "."),
    "hooks": "Move them to `hooks` of each job.",
    "plugins": "Lakewright has no plugins. Remove them, and set `spark.jars` in `config` for drivers.",
    "profiles": "Move them to `profiles` of a module.",
    "store": Phrase("Name the project with ", Option("--project"), "."),
}


def namespace_warnings(file: ParsedFile) -> Iterator[Fault]:
    """Yield a warning for the file, or for each section of it that has no effect and for each metric sink."""
    sections = file.value if isinstance(file.value, dict) else {}
    found = [fault for name in sections for fault in _section_warnings(file, name, sections[name])]
    if not found:
        remedy = "Put what you need of it into the project."
        found = [Fault(f"{_name(file)} is not read", file.at(), remedy)]
    yield from found


def _section_warnings(file: ParsedFile, name: Any, section: Any) -> Iterator[Fault]:
    if name == "metrics":
        for position, sink in enumerate(section if isinstance(section, list) else [section]):
            kind = sink.get("kind") if isinstance(sink, dict) else sink
            where = file.at((name, position) if isinstance(section, list) else (name,))
            why = f"{_name(file)} is not read: the metric sink {str(kind)!r} has no effect"
            yield Fault(why, where, _SINKS.get(str(kind), _OTHER_SINK))
    elif name in _OF_NAMESPACE:
        why = f"{_name(file)} is not read: its {name!r} has no effect"
        yield Fault(why, file.at((name,)), _OF_NAMESPACE[name])


def _name(file: ParsedFile) -> str:
    return file.file.rsplit("/", 1)[-1]
