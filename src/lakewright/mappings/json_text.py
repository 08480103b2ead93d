"""The `extractJson` and `unpackJson` mappings: columns from JSON in text columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field as Declared

from lakewright.lake.columns import column, reader_schema
from lakewright.mappings.mapping import MAIN, InputMapping
from lakewright.schema.sql import name_sql
from lakewright.schema.types import TEXT
from lakewright.schemas.schema import Schema
from lakewright.spark.engine import measured
from lakewright.spark.functions import functions
from lakewright.spec.models.base import KindOf, Listed, Model, from_text
from lakewright.spec.models.fields import Field
from lakewright.spec.words import counted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lakewright.workspace.workspace import Workspace


_CORRUPT = "__corrupt_record"
_PARSED = "__parsed"

ParseMode = Annotated[Literal["PERMISSIVE", "DROPMALFORMED", "FAILFAST"], from_text(str.upper)]


class _JsonMapping(InputMapping):
    """A mapping that parses JSON."""

    allow_comments: bool = Declared(default=False, description="Accept comments in the style of Java.")
    allow_unquoted_field_names: bool = Declared(default=False, description="Accept names without quotes.")
    allow_single_quotes: bool = Declared(default=True, description="Accept single quotes.")
    allow_numeric_leading_zeros: bool = Declared(default=False, description="Accept numbers such as 007.")
    allow_non_numeric_numbers: bool = Declared(default=True, description="Accept NaN and Infinity.")
    allow_backslash_escaping_any_character: bool = Declared(
        default=False, description="Accept a backslash before any character."
    )
    allow_unquoted_control_chars: bool = Declared(
        default=False, description="Accept control characters in texts."
    )

    def reader_options(self) -> dict[str, str]:
        """Return Spark's options for parsing."""
        names = (name for name in _JsonMapping.model_fields if name.startswith("allow_"))
        aliases = _JsonMapping.model_fields
        return {str(aliases[name].alias): str(getattr(self, name)).lower() for name in names}


class ExtractJsonMapping(_JsonMapping):
    """Returns the declared columns of the JSON in a column; the output `error` has what can't be parsed.

    Null and empty text can't be parsed.
    """

    column: str = Declared(description="Column with the JSON, one document in each row.")
    declared_schema: Annotated[Schema, KindOf("schema", default="inline")] = Declared(
        alias="schema", description="Columns to take from the JSON."
    )
    parse_mode: ParseMode = Declared(
        default="PERMISSIVE",
        description="Whether JSON that can't be parsed goes to `error`, is left out, or fails the target.",
    )

    def outputs(self) -> tuple[str, ...]:
        """Return `main` and `error`."""
        return (MAIN, "error")

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the columns of what can be parsed; the run reports how many records cannot."""
        parsed = self._counted(self._parsed(frame, workspace), workspace)
        names = [field.name for field in self.declared_schema.fields(workspace)]
        columns = [column(_PARSED).getField(name).alias(name) for name in names]
        return parsed.where(self._is_parsed()).select(*columns)

    def transform_output(self, workspace: Workspace, name: str) -> DataFrame:
        """Return the texts that can't be parsed, in the column `record`."""
        parsed = self._parsed(workspace.frame(self.input), workspace)
        record = column(_PARSED).getField(_CORRUPT).alias("record")
        found = parsed.where(~self._is_parsed()).select(record)
        return found if self.parse_mode == "PERMISSIVE" else found.limit(0)

    def _counted(self, parsed: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the rows, and count those that are lost: nobody reads them from the output `error`."""
        from pyspark.sql import Observation

        project, output = workspace.project, f"{self.name}:error"
        readers = [*project.mappings.values(), *project.targets.values()]
        if self.parse_mode != "PERMISSIVE" or any(output in str(each.raw) for each in readers):
            return parsed
        observation = Observation()

        def note() -> str | None:
            values = measured(observation)
            if values is None:
                return None
            lost = counted(values["lost"], "record")
            return values["lost"] and (
                f"{self.label}: {lost} of column {self.column!r} could not be parsed and "
                f"{'is' if values['lost'] == 1 else 'are'} left out; read {output} to see them, or set "
                "parseMode to DROPMALFORMED or FAILFAST"
            )

        self.note(workspace, note)
        return parsed.observe(observation, functions.count_if(~self._is_parsed()).alias("lost"))

    def _is_parsed(self) -> Column:
        return column(_PARSED).getField(_CORRUPT).isNull() & column(_PARSED).isNotNull()

    def _parsed(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        schema = reader_schema(self.declared_schema.fields(workspace))
        mode = "FAILFAST" if self.parse_mode == "FAILFAST" else "PERMISSIVE"
        options = {**self.reader_options(), "mode": mode, "columnNameOfCorruptRecord": _CORRUPT}
        text = functions.coalesce(column(self.column).cast("string"), functions.lit(""))
        whole = f"{schema}, {name_sql(_CORRUPT)} string"
        return frame.select(functions.from_json(text, whole, options).alias(_PARSED))


class JsonColumn(Model):
    """A column with JSON."""

    name: str = Declared(description="Column with the JSON.")
    alias: str | None = Declared(default=None, description="Name of the result; default: the same column.")
    declared_schema: Annotated[Schema, KindOf("schema", default="inline")] = Declared(
        alias="schema", description="Columns to take from the JSON."
    )


class UnpackJsonMapping(_JsonMapping):
    """Replaces text columns with JSON by structs, or adds the structs.

    What can't be parsed, and a value that does not fit its field, is null.
    """

    columns: Listed[JsonColumn] = Declared(min_length=1, description="The columns to unpack.")
    corrupted_column: str = Declared(
        default="_corrupt_record",
        description="Field for the text of JSON that can't be parsed; without this key, only if the schema "
        "declares the field.",
    )

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the input with the structs."""
        options = {**self.reader_options(), "columnNameOfCorruptRecord": self.corrupted_column}
        is_set = "corrupted_column" in self.model_fields_set
        for each in self.columns:
            fields = each.declared_schema.fields(workspace)
            keeps_text = any(field.name == self.corrupted_column for field in fields)
            texts = () if keeps_text else (Field(name=self.corrupted_column, type=TEXT),)
            schema = reader_schema((*fields, *texts))
            found = functions.from_json(column(each.name).cast("string"), schema, options)
            if not keeps_text and not is_set:
                found = self._without_text(found, [field.name for field in fields])
            frame = frame.withColumn(each.alias or each.name, found)
        return frame

    def _without_text(self, found: Column, names: Sequence[str]) -> Column:
        """Return the struct without the text of what can't be parsed; null if nothing was parsed of it."""
        is_broken = reduce(
            lambda one, name: one & found.getField(name).isNull(),
            names,
            found.getField(self.corrupted_column).isNotNull(),
        )
        kept = found.dropFields(name_sql(self.corrupted_column))
        return functions.when(~is_broken, kept)
