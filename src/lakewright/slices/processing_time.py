"""The processing times of slices: one for all, one for each by an expression over the slice, or the clock's.

Source: `processing-strategies.md`, "Processing Time Override"; expressions over a slice, and that a text that
is no time is an error, are Lakewright's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from lakewright.due.facts import SliceTime, TimeSource
from lakewright.errors import Fault, SpecError, UsageError
from lakewright.errors.phrase import Command, Phrase, Placeholder
from lakewright.manifest.lock import command
from lakewright.manifest.record import parse_instant, parse_instant_in
from lakewright.slices.discovery import called_name, slice_name
from lakewright.spec.expressions.expression import (
    Access,
    Literal,
    Name,
    Node,
    names_in,
    parse_template,
    parts_of,
)
from lakewright.spec.expressions.functions import DATE, TEXT, Function, Namespace
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.expressions.values import with_offset
from lakewright.spec.models.entity import Strategy
from lakewright.spec.models.entity_settings import NAMED_TIME
from lakewright.spec.models.slice_folder import dates_in
from lakewright.spec.words import first_of

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from lakewright.manifest.item import Item
    from lakewright.spec.models.entity import Entity


SLICE = "slice"
"""Name of the slice in expressions."""

TICK = timedelta(microseconds=1)
"""Least difference between the processing times of two slices: Spark keeps times in microseconds."""

APART = timedelta(seconds=1)
"""The time between slices that declare the same processing time, and from a version to the next slice."""

MOST_NAMED = 3

_REMEDY = "Give it in ISO 8601, such as 2024-05-01 or 2024-05-01T06:00:00+02:00."


def depends_on_slice(text: str) -> bool:
    """Return whether a text is an expression over the slice.

    Raises:
        SpecError: An expression is invalid.

    Example:
        >>> depends_on_slice("${slice.date}T06:00:00"), depends_on_slice("$day")
        (True, False)
    """
    return "$" in text and SLICE in names_in(parse_template(text))


def unknown_members(text: str) -> tuple[str, ...]:
    """Return what an expression asks of the slice that no slice has.

    Example:
        >>> unknown_members("${slice.dat}T00:00:00"), unknown_members("$slice.date('yyyyMMdd')")
        (('dat',), ())
    """
    return tuple(_unknown_members(parse_template(text))) if "$" in text else ()


def _unknown_members(node: Node) -> Iterator[str]:
    if isinstance(node, Access) and isinstance(node.target, Name) and node.target.name == SLICE:
        known = ("date",) if node.arguments is not None else ("date", "name", "time")
        if node.member not in known:
            yield node.member
    for part in parts_of(node):
        yield from _unknown_members(part)


def _date_form(text: str) -> str | None:
    """Return the form of dates if an expression is the date of that form in a slice's name.

    Example:
        >>> _date_form("${slice.date('dd.MM.yyyy')}"), _date_form("${slice.date}")
        ('dd.MM.yyyy', None)
    """
    match parse_template(text).single:
        case Access(Name("slice"), "date", (Literal(str(form)),)):
            return form
    return None


@dataclass(frozen=True, slots=True)
class ProcessingTimes:
    """The processing times that the caller gave.

    Attributes:
        text: ISO 8601, or an expression that gives such a text; None for the clock's time.
        zone: Time zone of texts without an offset.
        scope: Names that the expression may use beside `slice`.
        is_lenient: Whether a text that is no time is only warned of, and the clock's time is used.
        warn: Receives the warning.
        entity: What commands call the entity.
        column: The column of slices whose latest value is their time, where no text gives one.
    """

    text: str | None
    zone: ZoneInfo
    scope: Scope
    is_lenient: bool
    warn: Callable[[str], None]
    entity: str = "ENTITY"
    column: str | None = None

    @classmethod
    def of(
        cls,
        entity: Entity,
        text: str | None,
        zone: ZoneInfo,
        scope: Scope,
        *,
        is_lenient: bool = False,
        warn: Callable[[str], None] = lambda _: None,
    ) -> ProcessingTimes:
        """Return the times that a text gives the slices of an entity, or else the entity's own setting."""
        own = entity.settings
        column = None if text else own.time_column
        return cls(text or own.slice_time, zone, scope, is_lenient, warn, entity.called, column)

    @property
    def is_one(self) -> bool:
        """Whether one time is given, whatever the slice."""
        return self.text is not None and not depends_on_slice(self.text)

    def at(self, slice_name: str) -> datetime | None:
        """Return the processing time of a slice; None for the clock's.

        Raises:
            UsageError: The text is no time, or the expression has no value for the slice.
        """
        if self.text is None or not (rendered := self._rendered(self.text, slice_name)):
            return None
        found = parse_instant_in(rendered, self.zone)
        if found is None and not self.is_lenient:
            of_slice = "" if rendered == self.text else f" of slice {slice_name}"
            is_of_slice = depends_on_slice(self.text)
            remedy = Phrase(_REMEDY, " ", self._left_out(slice_name)) if is_of_slice else _REMEDY
            raise UsageError(f"the processing time {rendered!r}{of_slice} is not ISO 8601", remedy=remedy)
        return found

    def planned(self, slice_name: str, item: Item | None) -> SliceTime:
        """Return what gives a slice its processing time, and the time if it is known beforehand."""
        try:
            found = self.at(slice_name)
        except UsageError:  # a run refuses the slice, and a plan says so
            found = None
        at = None if found is None else found.astimezone(self.zone)
        if self.column is not None:
            return SliceTime(TimeSource.COLUMN, self.column)
        if at is None and item is not None and (kept := _kept(item)) is not None:
            return SliceTime(TimeSource.RECORDED, at=kept.astimezone(self.zone))
        if self.text is None:
            return SliceTime(TimeSource.CLOCK)
        if self.text == NAMED_TIME:
            return SliceTime(TimeSource.UNDATED if at is None else TimeSource.NAME, at=at)
        if (form := _date_form(self.text)) is not None:
            return SliceTime(TimeSource.FORM, form, at)
        return SliceTime(TimeSource.EXPRESSION, self.text, at)

    def of_item(self, item: Item) -> datetime | None:
        """Return the processing time that the caller gives a slice, or that an undo kept for it, or None.

        Raises:
            UsageError: The text is no time, or the expression has no value for the slice.
        """
        given = self.at(slice_name(item))
        return _kept(item) if given is None else given

    def check_readable(self) -> str | None:
        """Return a warning if the one time that is given is no time, and that is allowed."""
        if self.is_one and self.at("") is None:
            warning = f"the processing time {self.text!r} is not ISO 8601; the current time is used"
            self.warn(warning)
            return warning
        return None

    def check_order(self, names: Sequence[str], entity: str, *, is_historic: bool = True) -> None:
        """Raise an error unless versions of records can begin and end at the times of these slices, in turn.

        Args:
            names: The slices, in order.
            entity: What commands call their entity.
            is_historic: Whether versions begin at the times; otherwise each slice must only have one.

        Raises:
            UsageError: A slice has no time, one is given for several slices, or one is not later than the
                one before.
        """
        one = self.at("") if self.is_one else None
        if is_historic and one is not None and len(names) > 1:
            raise UsageError(
                f"one processing time is given for {len(names)} pending slices",
                remedy=_own_times(entity, names[0]),
            )
        former: tuple[str, datetime] | None = None
        for name in names:
            at = self.at(name)
            if is_historic and at is not None and former is not None and at <= former[1]:
                skip = command("skip", called_name(entity, name))
                raise UsageError(
                    f"the processing time {at.isoformat()} of slice {name} is not later than that of slice "
                    f"{former[0]}, {former[1].isoformat()}",
                    remedy=Phrase(_own_times(entity, former[0]), " Or leave one out: ", skip, "."),
                )
            former = former if at is None else (name, at)

    def _rendered(self, text: str, slice_name: str) -> str:
        try:
            return with_offset(self.scope.child({SLICE: _slice_value(slice_name)}).render(text))
        except SpecError as error:
            fault = error.faults[0]
            lacks_date = _iso_date(slice_name) is None and fault.details.get("unknown_property") == "date"
            why = "its name has no date such as 2024-05-01" if lacks_date else fault.message
            otherwise = _WITHOUT_DATE if lacks_date else fault.remedy or "Correct the expression."
            raise UsageError(
                f"the processing time {text!r} has no value for the slice {slice_name}: {why}",
                remedy=Phrase(otherwise, " ", self._left_out(slice_name)),
            ) from error

    def _left_out(self, slice_name: str) -> str:
        # A slice that the manifest knows goes on to hold the others back when it is removed or renamed.
        skipping = command("skip", called_name(self.entity, slice_name))
        return Phrase("If it is no slice, or comes again under another name: ", skipping, ".")


def _kept(item: Item) -> datetime | None:
    """Return the processing time that an undo has kept for a slice, or None."""
    kept = None if item.new is None else item.new.note.get("processing_time")
    return None if kept is None else parse_instant(kept)


_WITHOUT_DATE = "Name the form of the dates, as in ${slice.date('dd.MM.yyyy')}."


def _iso_date(name: str) -> date | None:
    found = iso_time(name)
    return date.fromisoformat(found[:10]) if found else None


def iso_time(name: str) -> str:
    """Return the first date in a name, as `dates_in` yields it; empty if there is none."""
    return next(dates_in(name), "")


def _slice_value(name: str) -> Namespace:
    """Return the slice as expressions see it: its name, and the date in its name."""

    def find(pattern: str) -> date | datetime:
        return find_date(name, pattern)

    properties: dict[str, object] = {"name": name, "time": iso_time(name)}
    if (found := _iso_date(name)) is not None:
        properties["date"] = found
    return Namespace(SLICE, {"date": Function(SLICE, "date", (TEXT,), DATE, find)}, properties)


def find_date(name: str, pattern: str) -> date | datetime:
    """Return the first date in a slice's name that has a form, such as `dd.MM.yyyy` or `yyyyMMdd_HHmm`.

    Raises:
        ValueError: The name has no such date, or the pattern lacks year, month or day.

    Example:
        >>> find_date("sales-03.05.2024.csv", "dd.MM.yyyy")
        datetime.date(2024, 5, 3)
        >>> find_date("sales-20240503T0630", "yyyyMMdd'T'HHmm")
        datetime.datetime(2024, 5, 3, 6, 30)
    """
    pieces = pattern.split("'")
    text = "".join(re.escape(piece) if index % 2 else _as_regex(piece) for index, piece in enumerate(pieces))
    try:
        match = re.search(text, name)
    except re.error as error:
        raise ValueError(f"the pattern {pattern!r} has a part twice") from error
    if match is None:
        raise ValueError(f"the name {name!r} has no date of the form {pattern!r}")
    parts = {unit: int(value) for unit, value in match.groupdict().items()}
    if not {"y", "M", "d"} <= parts.keys():
        raise ValueError(f"the pattern {pattern!r} lacks the year, the month or the day")
    year = parts["y"] if parts["y"] > 99 else 2000 + parts["y"]
    day = date(year, parts["M"], parts["d"])
    if not {"H", "m", "s"} & parts.keys():
        return day
    return datetime(day.year, day.month, day.day, parts.get("H", 0), parts.get("m", 0), parts.get("s", 0))


def _as_regex(piece: str) -> str:
    return "".join(
        rf"(?P<{letter}>\d{{{len(list(run))}}})" if letter in "yMdHms" else re.escape("".join(run))
        for letter, run in groupby(piece)
    )


def _own_times(entity: str, name: str) -> Phrase:
    """Return how each slice gets a time of its own; `name` is the first one."""
    typed = Command("process", entity, name, "--processing-time", Placeholder("<time>"))
    return Phrase(
        "Give each its own time, in their order, by an expression such as ${slice.date}, or one by one: ",
        typed,
        ".",
    )


TOLERANCE = timedelta(days=1)
"""How much later than now a time may be: the date of a slice may be that of another time zone."""


def future_warning(at: datetime, now: datetime, strategy: Strategy) -> str | None:
    """Return that a processing time is in the future, and what follows from it; None if it is not.

    Example:
        >>> from datetime import UTC
        >>> noon = datetime(2024, 5, 1, 12, tzinfo=UTC)
        >>> future_warning(noon + timedelta(hours=23), noon, Strategy.MERGE)
        >>> future_warning(noon + timedelta(days=2), noon, Strategy.MERGE)
        'the processing time 2024-05-03T12:00:00+00:00 is in the future'
    """
    if at <= now + TOLERANCE:
        return None
    text = f"the processing time {at.isoformat()} is in the future"
    if strategy is not Strategy.HISTORIC:
        return text
    return f"{text}: new versions begin then, and slices with earlier times are refused afterwards"


def future_times_fault(
    called: str, given: Iterable[tuple[str, datetime | None]], strategy: Strategy, now: datetime
) -> Fault | None:
    """Return that the times of pending slices are in the future, with the command that skips these, or None.

    Args:
        called: What commands call the entity.
        given: The slices with their processing times; None is that of now.
        strategy: By which they are processed.
        now: The present time.
    """
    warnings = [(name, why) for name, at in given if at and (why := future_warning(at, now, strategy))]
    if not warnings:
        return None
    names = [name for name, _ in warnings]
    skipping = command("skip", *(called_name(called, name) for name in names[:MOST_NAMED]))
    return Fault(
        first_of([f"{name}: {why}" for name, why in warnings], MOST_NAMED, "\n"),
        remedy=Phrase("Leave out what has a wrong date: ", skipping, "."),
        details={"slices": names},
    )
