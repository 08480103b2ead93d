"""Draft a project from the snapshots of a dbt project: each becomes an entity that adopts its table.

Snapshots are declared in YAML (`snapshots:` of a properties file) or in SQL (a block with `config(…)`).
Values that are written out are read; those that an expression gives are left to a person.

Source: dbt's documentation, "Snapshots" and "Snapshot configurations".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml

from lakewright.errors import UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.files import LocalFiles
from lakewright.profiling.project_text import scalar_text
from lakewright.spec.models.adoption import DBT, LIKE
from lakewright.spec.reading.files import PROJECT_FILE
from lakewright.usecases.draft_project import check_folder, project_name

DBT_PROJECT = "dbt_project.yml"

_BLOCK = re.compile(r"{%-?\s*snapshot\s+(\w+)\s*-?%}(.*?){%-?\s*endsnapshot\s*-?%}", re.DOTALL)
_CONFIG = re.compile(r"{{-?\s*(config\s*\(.*?\))\s*-?}}", re.DOTALL)
_SOURCE = re.compile(r"""(?:ref|source)\(\s*(?:['"](\w+)['"]\s*,\s*)?['"](\w+)['"]\s*\)""")
_NAME = re.compile(r"\w+")
_ROLES = {column: role for role, column in LIKE[DBT].items()}


class Question(StrEnum):
    """What only a person knows of a snapshot."""

    FILES = "files"
    KEY = "key"
    CHECKED = "checked"
    UNREAD = "unread"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot as dbt knows it.

    Attributes:
        name: Its name.
        config: What is configured.
        source: The model or source table that it reads; empty if that is not written out.
        unread: Keys of the configuration whose values are expressions.
    """

    name: str
    config: Mapping[str, Any]
    source: str = ""
    unread: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of the unique key; none if it is an expression."""
        declared = self.config.get("unique_key") or ()
        found = [declared] if isinstance(declared, str) else list(declared)
        return tuple(found) if all(_NAME.fullmatch(str(each)) for each in found) else ()

    @property
    def table(self) -> str:
        """The name of its table in the catalog."""
        schema = self.config.get("schema") or self.config.get("target_schema")
        name = str(self.config.get("alias") or self.name)
        return f"{schema}.{name}" if schema else name

    @property
    def infers_deletes(self) -> bool:
        """Whether records that its query lacks are deleted."""
        wanted = str(self.config.get("hard_deletes", "ignore")).lower()
        return wanted in ("invalidate", "new_record") or bool(self.config.get("invalidate_hard_deletes"))

    @property
    def questions(self) -> Iterator[tuple[Question, str]]:
        """What is left to a person, with what it is about."""
        yield Question.FILES, self.source
        if not self.keys:
            yield Question.KEY, str(self.config.get("unique_key") or "")
        checked = self.config.get("check_cols")
        if isinstance(checked, list):
            yield Question.CHECKED, ", ".join(map(str, checked))
        if "." not in self.table:
            yield Question.TABLE, self.table
        if self.unread:
            yield Question.UNREAD, ", ".join(self.unread)


@dataclass(frozen=True, slots=True)
class DbtDraft:
    """A project that was written for the snapshots of a dbt project."""

    file: Path
    snapshots: Sequence[Snapshot] = field(default=())

    def as_json(self) -> dict[str, Any]:
        """Return the document that `init --from-dbt -o json` prints."""
        return {
            "folder": str(self.file.parent),
            "files": 1,
            "entities": [
                {"name": each.name, "table": each.table, "key": list(each.keys)} for each in self.snapshots
            ],
            "questions": [
                {"entity": each.name, "code": code.value, "about": about}
                for each in self.snapshots
                for code, about in each.questions
            ],
        }


def draft_from_dbt(project: Path, folder: Path) -> DbtDraft:
    """Write a project whose entities adopt the tables of a dbt project's snapshots.

    Raises:
        UsageError: There is no dbt project, it has no snapshots, or the folder has a project.
    """
    if not (project / DBT_PROJECT).is_file():
        raise UsageError(
            f"there is no {DBT_PROJECT} in {project}; nothing was written",
            remedy="Name the folder of a dbt project.",
        )
    check_folder(folder)
    snapshots = tuple(find_snapshots(project))
    if not snapshots:
        raise UsageError(
            f"{project} declares no snapshots; nothing was written",
            remedy="A snapshot is declared in YAML below `snapshots:`, or in SQL in a snapshot block.",
        )
    file = folder.absolute() / PROJECT_FILE
    LocalFiles().write(str(file), snapshots_text(project_name(file.parent), snapshots).encode())
    return DbtDraft(file, snapshots)


def find_snapshots(project: Path) -> Iterator[Snapshot]:
    """Yield the snapshots of a dbt project, by file; packages and built files are left out.

    Raises:
        UsageError: A file of YAML can't be read.
    """
    for file in sorted(project.rglob("*")):
        inside = file.relative_to(project).parts
        if {"target", "dbt_packages", "dbt_modules"} & set(inside) or any(part[0] == "." for part in inside):
            continue
        if file.suffix in (".yml", ".yaml"):
            yield from _of_yaml(file)
        elif file.suffix == ".sql":
            yield from map(_of_sql, _BLOCK.finditer(file.read_text("utf-8", "replace")))


def _of_yaml(file: Path) -> Iterator[Snapshot]:
    try:
        document = yaml.safe_load(file.read_text("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} can't be read: {error}", remedy="Correct it.") from error
    listed = document.get("snapshots") if isinstance(document, dict) else None
    for each in listed if isinstance(listed, list) else ():
        # Without a relation, an entry describes a snapshot that a file of SQL declares.
        if isinstance(each, dict) and each.get("name") and each.get("relation"):
            config = found if isinstance(found := each.get("config"), dict) else {}
            unread = tuple(key for key, value in config.items() if "{{" in str(value))
            known = {key: value for key, value in config.items() if key not in unread}
            yield Snapshot(str(each["name"]), known, _source(str(each["relation"])), unread)


def _of_sql(block: re.Match[str]) -> Snapshot:
    name, body = block.groups()
    config, unread = dict[str, Any](), list[str]()
    for written in _CONFIG.finditer(body):
        try:
            call = ast.parse(written[1].replace("\n", " "), mode="eval").body
        except SyntaxError:
            unread.append("config")
            continue
        for keyword in call.keywords if isinstance(call, ast.Call) else ():
            try:
                config[str(keyword.arg)] = ast.literal_eval(keyword.value)
            except ValueError:
                unread.append(str(keyword.arg))
    return Snapshot(name, config, _source(_CONFIG.sub("", body)), tuple(unread))


def _source(text: str) -> str:
    found = _SOURCE.search(text)
    return ".".join(filter(None, found.groups())) if found else ""


def snapshots_text(name: str, snapshots: Sequence[Snapshot]) -> str:
    """Return the project file of some snapshots, with a comment beside what a person has to look at."""
    lines = [
        f"# {Phrase('Made from the snapshots of a dbt project. ', Command('plan'), ' shows what is due.')}",
        "# Each entity takes the snapshot's table over, with its history, once its first slice is there.",
        f"name: {scalar_text(name)}",
        "",
        "entities:",
    ]
    for each in snapshots:
        lines += ["", *(f"  {line}".rstrip() for line in _entity(each))]
    return "\n".join([*lines, ""])


def _entity(snapshot: Snapshot) -> Iterator[str]:
    config = snapshot.config
    read = snapshot.source or "the query"
    yield f"{scalar_text(snapshot.name)}:"
    yield f"  # Where exports of {read} arrive; by default in bronze/{snapshot.name} of the lake:"
    yield f"  # from: landing/{snapshot.name}/*.parquet"
    if snapshot.keys:
        yield f"  key: [{', '.join(map(scalar_text, map(str, snapshot.keys)))}]"
    else:
        yield f"  # The unique key of dbt is an expression: {config.get('unique_key')}. Name its columns."
        yield "  # key: []"
    yield "  strategy: historic"
    if snapshot.infers_deletes:
        yield "  deletes: snapshot                # hard_deletes: each slice is the whole source"
    if str(config.get("strategy")) == "timestamp" and _NAME.fullmatch(str(config.get("updated_at", ""))):
        yield f"  order_by: {scalar_text(str(config['updated_at']))}"
    if isinstance(checked := config.get("check_cols"), list):
        yield f"  # dbt compared only {', '.join(map(str, checked))}: list the other columns in hash_exclude."
    yield f"  silver_table: {scalar_text(snapshot.table)}"
    yield from _adoption(config)
    if snapshot.unread:
        yield f"  # Not read, as expressions give their values: {', '.join(snapshot.unread)}."


def _adoption(config: Mapping[str, Any]) -> Iterator[str]:
    named = config.get("snapshot_meta_column_names")
    roles = (
        {_ROLES[column]: own for column, own in named.items() if column in _ROLES}
        if isinstance(named, dict)
        else {}
    )
    end = str(config.get("dbt_valid_to_current") or "")
    dates = re.findall(r"\d{4}-\d{2}-\d{2}", end)
    if not roles and not dates:
        yield "  adopt: dbt_snapshot"
        return
    yield "  adopt:"
    yield "    like: dbt_snapshot"
    yield from (f"    {role}: {scalar_text(str(own))}" for role, own in roles.items())
    if dates:
        yield f'    sentinel: "{dates[0]}"'
