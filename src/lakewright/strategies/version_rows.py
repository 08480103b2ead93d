"""Rows that no slice made and that are taken over as versions: their times and flags, and checks of them.

Other tools write times as timestamps, days or texts, with values that mean no end. Rows whose meaning is not
clear prevent that any of them is taken over. A check is a value; all checks of a frame are counted by one
query. The checks are Lakewright's own.

Source: `processing-strategies.md`, "Version Lifecycle"; the rules of rewinds, "Rebuild".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.errors import MigrationError
from lakewright.schema.conversion import convert
from lakewright.schema.rules import ValueRules
from lakewright.schema.scalars import class_of
from lakewright.schema.spark import column_types
from lakewright.schema.sql import name_sql, text_sql
from lakewright.schema.types import BOOLEAN, TEXT, Scalar, Type
from lakewright.spec.words import first_of
from lakewright.transform.steps import find_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


FROM, END, UNREAD, NEXT, SAME = (f"_lakewright_{name}" for name in ("from", "end", "unread", "next", "same"))
"""Columns of the rows: start and end, which is null for versions without one, whether one of the values with
a role can't be read, the start of the next row of the record, and the number of rows that only one may be."""

TIMESTAMP, LOCAL_TIME = Scalar("timestamp"), Scalar("timestamp_ntz")

DAY_LENGTH = len("2024-05-01")
"""Characters of a time that is a day."""

MOST = 30
"""Number of columns that an error shows."""

SAMPLES = 5
"""Number of keys that an error shows for each failed check."""


@dataclass(frozen=True, slots=True)
class Roles:
    """The columns of rows that say when they are valid, and whether they are current or deleted.

    Attributes:
        names: Role (`valid_from`, …) to the column that has it.
        types: Role to the column's type.
        zone: Time zone of times without an offset; None if these can't be read.
        sentinels: Ends that stand for no end.
    """

    names: Mapping[str, str]
    types: Mapping[str, Type]
    zone: str | None
    sentinels: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, names: Mapping[str, str], schema: StructType, zone: str | None, sentinels: tuple[str, ...]
    ) -> Roles:
        """Return the roles of columns of a schema."""
        types = column_types(schema)
        return cls(names, {role: types[name] for role, name in names.items()}, zone, sentinels)

    def instant(self, role: str) -> str:
        """Return SQL of the instant in a column; null if there is none or it cannot be read."""
        if role not in self.names:
            return "cast(null as timestamp)"
        return self._read(role, TIMESTAMP)

    def end(self) -> str:
        """Return SQL of the end in `valid_to`; null for no end."""
        if "valid_to" not in self.names:
            return self.instant("valid_to")
        return f"if({self._is_open()}, null, {self.instant('valid_to')})"

    def after_end(self, end: str) -> str:
        """Return SQL of the first instant after an end that is a version's last instant or day.

        Args:
            end: SQL of the end.
        """
        own = self.types.get("valid_to")
        moment, day = f"{end} + interval 1 microsecond", self.day_after(end)
        if own is not None and class_of(own) == "text":
            return f"if(length({self._given('valid_to')}) = {DAY_LENGTH}, {day}, {moment})"
        return day if own == Scalar("date") else moment

    def day_after(self, instant: str) -> str:
        """Return SQL of the time of day of an instant on the next day, on the clocks of the zone."""
        rules = ValueRules(self.zone or "UTC")
        local = convert(instant, TIMESTAMP, LOCAL_TIME, column="", rules=rules).sql
        next_ = convert(f"{local} + interval 1 day", LOCAL_TIME, TIMESTAMP, column="", rules=rules).sql
        return f"coalesce({next_}, {instant} + interval 1 day)"  # clocks may skip it, or show it twice

    def flag(self, role: str, missing: str = "null") -> str:
        """Return SQL of a flag; null if it cannot be read, and `missing` if no column has the role."""
        if role not in self.names:
            return f"cast({missing} as boolean)"
        return self._read(role, BOOLEAN)

    def _read(self, role: str, target: Type) -> str:
        """Return SQL of the column's value in a type, by the rules by which values of slices are read."""
        name, own = self.names[role], self.types[role]
        return convert(self._given(role), own, target, column=name, rules=ValueRules(self.zone)).sql

    def _given(self, role: str) -> str:
        """Return SQL of the column's value, a text without spaces around it."""
        value = name_sql(self.names[role])
        return f"trim({value})" if class_of(self.types[role]) == "text" else value

    def unread(self) -> str:
        """Return SQL of whether a column with a role holds a value that cannot be read."""
        tests = []
        for role, name in self.names.items():
            is_null = self._is_open() if role == "valid_to" else f"{name_sql(name)} is null"
            read = self.flag(role) if role in ("is_current", "deleted") else self.instant(role)
            tests.append(f"not ({is_null} or ({read}) is not null)")
        return " or ".join(tests) or "false"

    def _is_open(self) -> str:
        """Return SQL of whether an end stands for no end: null, or a sentinel as text, day or time."""
        name, own, rules = self.names["valid_to"], self.types["valid_to"], ValueRules(self.zone or "UTC")
        local = convert(self._given("valid_to"), own, LOCAL_TIME, column=name, rules=rules).sql
        tests = [f"{name_sql(name)} is null"]
        for sentinel in self.sentinels:
            literal = text_sql(sentinel)
            time = convert(literal, TEXT, LOCAL_TIME, column=name, rules=rules).sql
            tests += [f"cast({name_sql(name)} as string) = {literal}", f"{local} = {time}"]
            if len(sentinel) == DAY_LENGTH:
                tests.append(f"cast({local} as date) = try_cast({literal} as date)")
        return " or ".join(f"coalesce({test}, false)" for test in tests)


def check_present(
    what: str, wanted: Iterable[str], present: Sequence[str], remedy: str, **details: Any
) -> None:
    """Check that rows to take over have the columns that the declaration names.

    Args:
        what: The rows in messages.
        wanted: The columns that they must have.
        present: Those that they have.
        remedy: What to do if they lack one.
        details: Details of the error.

    Raises:
        MigrationError: A column is missing.
    """
    lacking = [name for name in dict.fromkeys(wanted) if find_name(present, name) is None]
    if lacking:
        raise MigrationError(
            f"{what} lacks {', '.join(map(repr, lacking))}; it has {first_of([*map(repr, present)], MOST)}",
            remedy=remedy,
            details={**details, "lacks": lacking, "present": list(present)},
        )


_PLURALS = {"is": "are", "has": "have", "does": "do", "its": "their"}


@dataclass(frozen=True, slots=True)
class RowCheck:
    """A check of rows.

    Attributes:
        noun: What the rows are.
        verbs: What one row that fails does: a verb, or several with `or` between them, and its object.
        rest: The rest of that sentence.
        condition: SQL condition of the rows that fail; null counts as false.
        remedy: What to do about them.
    """

    noun: str
    verbs: str
    rest: str
    condition: str
    remedy: str = ""

    def text(self, count: int) -> str:
        """Return the sentence on a number of rows that fail.

        Example:
            >>> check = RowCheck("row", "begins or is", "late", "start > 1", "Correct them.")
            >>> check.text(1), check.text(1200)
            ('1 row begins or is late', '1,200 rows begin or are late')
        """
        return f"{count:,} {self.subject(count)} {self.rest}"

    def subject(self, count: int) -> str:
        """Return the noun with its verbs for a number of rows."""
        if count == 1:
            return f"{self.noun} {self.verbs}"
        verbs = (_PLURALS.get(word, word.removesuffix("s")) for word in self.verbs.split())
        return f"{self.noun}s {' '.join(verbs)}"


def interval_checks(noun: str, remedy: str, *, may_be_empty: bool) -> Iterator[RowCheck]:
    """Yield the checks of the interval of each row.

    Args:
        noun: What the rows are.
        remedy: What to do about those that fail.
        may_be_empty: Whether a version may end when it begins.
    """
    before = "<" if may_be_empty else "<="
    at_once = "" if may_be_empty else ", or at once"
    yield RowCheck(noun, "has", "no beginning", f"{FROM} is null and not {UNREAD}", remedy)
    yield RowCheck(noun, "begins", "when another one of the same key begins", f"{NEXT} = {FROM}", remedy)
    yield RowCheck(noun, "ends", f"before beginning{at_once}", f"{END} {before} {FROM}", remedy)


def check_rows(
    rows: DataFrame,
    checks: Iterable[RowCheck],
    *,
    keys: Sequence[str],
    refusal: str,
    counts: Mapping[str, str],
) -> dict[str, int]:
    """Check rows and return other counts of them, by one query.

    Args:
        rows: The rows.
        checks: The checks.
        keys: Columns whose values the error shows for some of the rows that fail.
        refusal: The beginning of the error's message.
        counts: SQL of the aggregates to return, by name.

    Raises:
        MigrationError: Rows fail checks; the message names all failed checks, with samples of keys.
    """
    from pyspark.sql import functions

    found = list(checks)
    failures = (f"count_if(coalesce({check.condition}, false))" for check in found)
    row = rows.agg(*(functions.expr(sql) for sql in (*counts.values(), *failures))).first()
    numbers = [0] * (len(counts) + len(found)) if row is None else [int(value) for value in row]
    failed = [(check, n) for check, n in zip(found, numbers[len(counts) :], strict=True) if n]
    if failed:
        texts = (f"{check.text(n)}{_samples(rows, check, n, keys)}" for check, n in failed)
        raise MigrationError(
            f"{refusal}: {'; '.join(texts)}",
            remedy=failed[0][0].remedy,
            details={f"{check.subject(0)} {check.rest}": n for check, n in failed},
        )
    return dict(zip(counts, numbers, strict=False))


def _samples(rows: DataFrame, check: RowCheck, count: int, keys: Sequence[str]) -> str:
    """Return the keys of some rows that fail, for a message; nothing if they have no keys."""
    if not keys:
        return ""
    found: list[Any] = rows.where(check.condition).selectExpr(*map(name_sql, keys)).limit(SAMPLES).collect()
    shown = [", ".join(f"{name}={row[name]}" for name in keys) for row in found]
    return f" ({'; '.join(shown)}{' …' if count > len(shown) else ''})"
