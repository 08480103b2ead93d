"""The `assemble` mapping: a new structure from the columns and nested fields of its input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

from pydantic import BeforeValidator, model_validator
from pydantic import Field as Declared

from lakewright.mappings.mapping import InputMapping
from lakewright.mappings.nested import Naming, NamingText
from lakewright.schema.sql import name_sql
from lakewright.spark.functions import functions
from lakewright.spec.models.base import Listed, Model, Texts, inconsistent

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from lakewright.workspace.workspace import Workspace


Path: TypeAlias = tuple[str, ...]

_NEEDS = {"explode": "path", "rename": "columns", "lift": "columns", "nest": "name", "struct": "name"}
"""The key that an entry of a kind can't do without."""


def _columns(declared: Any) -> Any:
    """Return a list of paths as a map: each path keeps the name of its last step."""
    listed = [declared] if isinstance(declared, str) else declared
    if isinstance(listed, (list, tuple)) and all(isinstance(each, str) for each in listed):
        return {path.rpartition(".")[2]: path for path in listed}
    return declared


class AssemblePart(Model):
    """Adds columns to the result, or to a struct."""

    kind: Literal["append", "flatten", "explode", "rename", "lift", "nest", "struct"] = Declared(
        default="append",
        description="`append`: columns as they are; `flatten`: nested fields as columns; `explode`: a row per"
        " element; `rename` and `lift`: single columns; `nest` and `struct`: columns as one struct.",
    )
    path: str = Declared(default="", description="Path of the struct; default: the row.")
    keep: Texts = Declared(default=(), description="Only these paths; default: all.")
    drop: Texts = Declared(default=(), description="All but these paths.")
    prefix: str = Declared(default="", description="Start of the names of flattened columns.")
    naming: NamingText = Declared(
        default=Naming.SNAKE_CASE, description="How names of flattened columns are joined: by `_` or by case."
    )
    name: str | None = Declared(default=None, description="Name of the struct, or of the exploded column.")
    columns: Annotated[dict[str, str], BeforeValidator(_columns)] = Declared(
        default_factory=dict, description="New names with paths, or a list of paths."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        needed = _NEEDS.get(self.kind)
        if needed is not None and not getattr(self, needed):
            raise inconsistent(f"an entry of kind {self.kind} needs `{needed}`")
        if self.kind == "struct" and not self.has_content:
            raise inconsistent("an entry of kind struct needs `columns`")
        return self

    @property
    def has_content(self) -> bool:
        """Whether it names any columns."""
        return bool(self.columns)

    def assembled(self, schema: StructType) -> list[Column]:
        """Return the columns for an input of this schema; columns that it lacks are left out."""
        base = _steps(self.path)
        if self.kind == "explode":
            return [functions.explode(_at(base)).alias(self.name or base[-1])]
        if self.kind in ("append", "flatten", "nest"):
            return self._selected(schema, base)
        named = [
            _at((*base, *_steps(path))).alias(name)
            for name, path in self.columns.items()
            if _find(schema, (*base, *_steps(path))) is not None
        ]
        if self.kind != "struct":
            return named
        return [functions.struct(*named, *self.parts(schema)).alias(self.name or "")]

    def absent(self, schema: StructType) -> Iterator[str]:
        """Yield the paths that are named here, and that an input of this schema lacks."""
        base = _steps(self.path)
        if base and _find(schema, base) is None:
            yield ".".join(base)
            return
        for path in (*self.keep, *self.drop, *self.columns.values()):
            steps = (*base, *_steps(path))
            if _find(schema, steps) is None:
                yield ".".join(steps)

    def parts(self, schema: StructType) -> list[Column]:
        """Return the further columns of a struct."""
        return []

    def _selected(self, schema: StructType, base: Path) -> list[Column]:
        found = _find(schema, base)
        fields = getattr(found, "fields", None)
        if fields is None:
            return []
        choice = _Choice(tuple(map(_steps, self.keep)), tuple(map(_steps, self.drop)))
        if self.kind == "flatten":
            return [
                _at((*base, *path)).alias(self.prefix + self.naming.joined(path))
                for path in choice.leaves(found, ())
            ]
        columns = choice.columns(found, base, ())
        return [functions.struct(*columns).alias(self.name or "")] if self.kind == "nest" else columns


class AssembleEntry(AssemblePart):
    """Adds columns to the result."""

    entries: Listed[AssemblePart] = Declared(
        default=(), description="What a `struct` consists of, instead of `columns`."
    )

    @model_validator(mode="before")
    @classmethod
    def _nested(cls, declared: Any) -> Any:
        # In Flowman, the columns of a struct are entries, too.
        if isinstance(declared, dict) and declared.get("kind") == "struct":
            parts = declared.get("columns")
            if isinstance(parts, (list, tuple)) and any(isinstance(each, dict) for each in parts):
                rest = {key: value for key, value in declared.items() if key != "columns"}
                return {**rest, "entries": parts}
        return declared

    @property
    def has_content(self) -> bool:
        """Whether it names any columns."""
        return bool(self.columns or self.entries)

    def absent(self, schema: StructType) -> Iterator[str]:
        """Yield the paths that are named here or in the entries, and that an input of this schema lacks."""
        yield from super().absent(schema)
        for entry in self.entries:
            yield from entry.absent(schema)

    def parts(self, schema: StructType) -> list[Column]:
        """Return the columns that the entries of a struct add to it."""
        return [each for entry in self.entries for each in entry.assembled(schema)]


class _Choice:
    """Chooses fields by the paths to keep and those to drop; case is ignored."""

    def __init__(self, keep: tuple[Path, ...], drop: tuple[Path, ...]) -> None:
        self.keep = [_lower(path) for path in keep]
        self.drop = [_lower(path) for path in drop]

    def _is_out(self, path: Path) -> bool:
        own = _lower(path)
        is_kept = not self.keep or any(_starts(own, path) or _starts(path, own) for path in self.keep)
        return not is_kept or own in self.drop

    def _is_whole(self, path: Path) -> bool:
        own = _lower(path)
        deeper = any(_starts(each, own) and each != own for each in (*self.keep, *self.drop))
        return not deeper or any(_starts(own, each) for each in self.keep if each != own)

    def leaves(self, struct: Any, before: Path) -> Iterator[Path]:
        """Yield the paths of the chosen fields that are no structs."""
        for field in struct.fields:
            path = (*before, field.name)
            if self._is_out(path):
                continue
            if hasattr(field.dataType, "fields"):
                yield from self.leaves(field.dataType, path)
            else:
                yield path

    def columns(self, struct: Any, base: Path, before: Path) -> list[Column]:
        """Return the chosen fields of a struct; of a nested struct, those of its fields that are chosen."""
        found = []
        for field in struct.fields:
            path = (*before, field.name)
            if self._is_out(path):
                continue
            whole = _at((*base, *path))
            if not hasattr(field.dataType, "fields") or self._is_whole(path):
                found.append(whole.alias(field.name))
                continue
            inner = self.columns(field.dataType, base, path)
            if inner:
                part = functions.when(whole.isNotNull(), functions.struct(*inner))
                found.append(part.alias(field.name))
        return found


class AssembleMapping(InputMapping):
    """Returns rows with a new structure: each entry adds columns, from any depth of the input.

    Columns that the input lacks are left out; the run warns of them.
    """

    columns: Listed[AssembleEntry] = Declared(min_length=1, description="The entries, in order.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if sum(entry.kind == "explode" for entry in self.columns) > 1:
            raise inconsistent("only one entry may be of kind explode", remedy="Chain several mappings.")
        return self

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the columns of all entries."""
        schema = frame.schema
        absent = [path for entry in self.columns for path in entry.absent(schema)]
        self.note_absent(workspace, absent, frame.columns)
        return frame.select(*(each for entry in self.columns for each in entry.assembled(schema)))


def _steps(path: str) -> Path:
    return tuple(step for step in path.split(".") if step)


def _lower(path: Path) -> Path:
    return tuple(step.lower() for step in path)


def _starts(path: Path, start: Path) -> bool:
    return path[: len(start)] == start


def _at(path: Path) -> Column:
    return functions.col(name_sql(*path))


def _find(schema: StructType, path: Path) -> Any:
    """Return the type at a path, or None."""
    found: Any = schema
    for step in path:
        fields = getattr(found, "fields", ())
        found = next((field.dataType for field in fields if field.name.lower() == step.lower()), None)
    return found
