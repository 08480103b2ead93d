"""Data types of columns, and folds over them.

A type is a frozen value; `ddl` writes it as Spark's SQL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

MOST_DIGITS = 38
"""Decimal digits that a decimal has at most, and a variant holds."""

EXACT_DIGITS = 15
"""Decimal digits that a double always keeps."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A type without parameters, with its name in Spark SQL, such as `bigint`."""

    name: str

    @property
    def ddl(self) -> str:
        """The type in Spark's SQL."""
        return self.name


@dataclass(frozen=True, slots=True)
class Decimal:
    """Exact numbers with `precision` digits, `scale` of them after the decimal point."""

    precision: int = 38
    scale: int = 18

    @property
    def ddl(self) -> str:
        """The type in Spark's SQL."""
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class Chars:
    """Text of limited length. Outside of tables, Spark treats it as `string`."""

    length: int
    is_fixed: bool = False

    @property
    def ddl(self) -> str:
        """The type in Spark's SQL."""
        return f"{'char' if self.is_fixed else 'varchar'}({self.length})"


@dataclass(frozen=True, slots=True)
class Array:
    """A list of elements of one type."""

    element: Type

    @property
    def ddl(self) -> str:
        """The type in Spark's SQL."""
        return f"array<{self.element.ddl}>"


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map from keys to values."""

    key: Type
    value: Type

    @property
    def ddl(self) -> str:
        """The type in Spark's SQL."""
        return f"map<{self.key.ddl},{self.value.ddl}>"


@dataclass(frozen=True, slots=True)
class StructField:
    """One field of a struct."""

    name: str
    type: Type
    nullable: bool = True
    description: str | None = None

    @property
    def ddl(self) -> str:
        """The field inside a struct in Spark's SQL."""
        name = "`" + self.name.replace("`", "``") + "`"
        return f"{name}: {self.type.ddl}{'' if self.nullable else ' NOT NULL'}"


@dataclass(frozen=True, slots=True)
class Struct:
    """Named fields, in order."""

    fields: tuple[StructField, ...]

    @property
    def ddl(self) -> str:
        """The type in Spark's SQL."""
        return f"struct<{', '.join(field.ddl for field in self.fields)}>"


Type: TypeAlias = Scalar | Decimal | Chars | Array | MapOf | Struct

BOOLEAN, TEXT, VARIANT, VOID = map(Scalar, ("boolean", "string", "variant", "void"))
