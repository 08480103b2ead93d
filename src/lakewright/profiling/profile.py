"""What files show of themselves: the profiles of entities, each guess with its reason, and open questions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any

from lakewright.profiling.grouping import Group, group_files, merged_groups
from lakewright.profiling.keys import KeyGuess, Overlap, guess_key, overlap_of
from lakewright.profiling.places import Place, Skipped
from lakewright.profiling.reason import QUESTIONS, Code, Reason
from lakewright.profiling.tables import NotData, Table, read_table
from lakewright.profiling.types import DATE, TIMESTAMP, TypeGuess, type_of_texts
from lakewright.schema.fits import merge
from lakewright.schema.shape import NESTED
from lakewright.schema.types import TEXT
from lakewright.spec.models.slice_folder import format_of

_FILES_A_SLICE = 3


@dataclass(frozen=True, slots=True)
class Look:
    """The files of a group that were looked at.

    Attributes:
        tables: By slice, the files that hold data.
        pairs: Positions of slices in `tables` between which there is no other.
    """

    group: Group
    tables: tuple[tuple[Table, ...], ...]
    pairs: tuple[tuple[int, int], ...] = ()
    skipped: tuple[Skipped, ...] = ()
    findings: tuple[Reason, ...] = ()

    @classmethod
    def of(cls, group: Group, place: Place) -> Look:
        """Look at the files of the first, the last and some other slices."""
        chosen = _chosen(len(group.slices))
        tables: list[tuple[Table, ...]] = []
        skipped: list[Skipped] = []
        findings: list[Reason] = []
        for at in chosen:
            found = []
            files = group.slices[at].files
            for file in files[:_FILES_A_SLICE]:
                try:
                    table = read_table(file, place.system).with_values(group.folder_values(file.name))
                    found.append(replace(table, is_whole=table.is_whole and len(files) <= _FILES_A_SLICE))
                except NotData as error:
                    skipped.append(Skipped(file.name, error.reason))
                    # It fails its slice; beside others, one without content has no rows.
                    if len(files) == 1 or error.reason.code is not Code.NO_CONTENT:
                        why = str(error.reason.code)
                        findings.append(Reason.of(Code.FAULTY_FILE, file=file.name, why=why))
            tables.append(tuple(found))
        pairs = tuple(
            (one, other)
            for one, other in pairwise(range(len(chosen)))
            if chosen[other] - chosen[one] == 1 and tables[one] and tables[other]
        )
        return cls(group, tuple(tables), pairs, tuple(skipped), tuple(findings))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the first file."""
        return next((table.columns for found in self.tables for table in found), ())


def _chosen(count: int) -> list[int]:
    """Return the positions of the slices to look at: the first and last two, and one between.

    Example:
        >>> _chosen(3), _chosen(100)
        ([0, 1, 2], [0, 1, 50, 98, 99])
    """
    return sorted({0, 1, count // 2, count - 2, count - 1} & set(range(count)))


def merged_looks(looks: Sequence[Look], place: Place) -> Iterator[Look]:
    """Yield the looks; those of single files with the same columns in one folder are one."""
    alike: dict[object, list[Look]] = {}
    for look in looks:
        is_alone = len(look.group.slices) == 1 and look.group.files == 1 and not look.group.is_dated
        key = (look.group.folder, look.group.kind, look.columns) if is_alone and look.columns else id(look)
        alike.setdefault(key, []).append(look)
    for found in alike.values():
        if len(found) == 1 or (not found[0].group.folder and len(alike) > 1):
            yield from found
            continue
        group = merged_groups([each.group for each in found], place)
        yield replace(Look.of(group, place), skipped=tuple(each for look in found for each in look.skipped))


_AGAIN, _RARELY = 0.8, 0.2
"""Shares of keys that come again in the next slice: from the first on, slices are the whole source; up to the
second, they have only what is new."""


@dataclass(frozen=True)
class EntityProfile:
    """What the files of an entity show.

    Attributes:
        group: Its files.
        tables: What was looked at: by slice, the files.
        form: The settings of `format`, with reasons; none where the defaults and the names of files suffice.
        types: The types of its columns.
        key: Its key.
        strategy: Its strategy, and why.
        is_snapshot: Whether each slice is the whole source; None if that is not known.
        findings: What is wrong or worth knowing.
    """

    group: Group
    tables: tuple[tuple[Table, ...], ...]
    form: Mapping[str, Any]
    types: Mapping[str, TypeGuess]
    key: KeyGuess
    strategy: str
    is_snapshot: bool | None
    why_load: Reason
    why_strategy: Reason
    findings: tuple[Reason, ...] = ()

    @property
    def name(self) -> str:
        """Its name."""
        return self.group.name

    @property
    def deletes(self) -> str | None:
        """The setting by which what a slice lacks is deleted; None where nothing is."""
        return "snapshot" if self.is_snapshot and self.strategy != "full" else None

    @property
    def looked_at(self) -> int:
        """The number of files that were looked at."""
        return sum(map(len, self.tables))

    @cached_property
    def settings(self) -> dict[str, Any]:
        """What the project declares of it."""
        settings: dict[str, Any] = {"from": self.group.place}
        if self.form:
            settings["format"] = dict(self.form)
        if self.key.columns:
            settings["key"] = self.key.columns[0] if len(self.key.columns) == 1 else [*self.key.columns]
        settings["strategy"] = self.strategy
        if self.deletes:
            settings["deletes"] = self.deletes
        if self.key.order_by:
            settings |= {"order_by": self.key.order_by, "duplicates": "latest"}
        declared = {
            name: self.declared(guess) for name, guess in self.types.items() if self.is_declared(name)
        }
        return {**settings, "columns": declared} if declared else settings

    def is_declared(self, name: str) -> bool:
        """Return whether a column's type must be declared: it differs from what the reader makes of it."""
        guess = self.types[name]
        return guess.reason.code in (Code.ALL_FIT, Code.FORM_OF_DATES) and guess.type != TEXT

    @staticmethod
    def declared(guess: TypeGuess) -> str | dict[str, str]:
        """Return how a type is declared."""
        return {"type": guess.type.ddl, "format": guess.format} if guess.format else guess.type.ddl

    def as_json(self) -> dict[str, Any]:
        """Return the profile as `-o json` prints it."""
        return {
            "name": self.name,
            "settings": self.settings,
            "slices": len(self.group.slices),
            "files": self.group.files,
            "files_looked_at": self.looked_at,
            "reasons": {
                "key": self.key.reason.as_json(),
                "load": self.why_load.as_json(),
                "strategy": self.why_strategy.as_json(),
                "columns": {
                    name: {"type": guess.type.ddl, **guess.reason.as_json()}
                    for name, guess in self.types.items()
                },
                "findings": [finding.as_json() for finding in self.findings],
            },
        }


def profile_entity(look: Look) -> EntityProfile:
    """Return what the files of an entity show."""
    tables = [table for found in look.tables for table in found]
    types = _types(tables)
    known = {name: guess.type for name, guess in types.items()}
    key = guess_key(look.group.name, look.tables, known)
    overlap = overlap_of(look.tables, look.pairs, key.columns)
    is_snapshot, why_load = _load(look, overlap)
    strategy, why_strategy = _strategy(look.group, key, is_snapshot)
    return EntityProfile(
        look.group,
        look.tables,
        _form(look.group, tables),
        types,
        key,
        strategy,
        is_snapshot,
        why_load,
        why_strategy,
        tuple(_findings(look, tables)),
    )


def _form(group: Group, tables: Sequence[Table]) -> dict[str, Any]:
    """Return the settings of the format, unless the ending in the pattern says all of them."""
    found = {"kind": tables[0].kind}
    found |= {name: value for table in reversed(tables) for name, value in table.form.items()}
    known = format_of(group.place)
    return {} if found in (known, {"kind": known}) else found


def _types(tables: Sequence[Table]) -> dict[str, TypeGuess]:
    names = dict.fromkeys(name for table in tables for name in table.columns)
    return {name: _type(name, tables) for name in names}


def _type(name: str, tables: Sequence[Table]) -> TypeGuess:
    """Return the type of a column: of files that give it none, or texts, by its values."""
    given = [table.types[name] for table in tables if name in table.types]
    own = reduce(lambda one, other: merge(one, other) or TEXT, given) if given else TEXT
    if isinstance(own, NESTED):
        return TypeGuess(own, Reason.of(Code.NESTED, type=own.ddl))
    if own != TEXT or tables[0].kind not in ("csv", "json"):
        return TypeGuess(own, Reason(Code.KIND))
    values = {value for table in tables for value in table.values(name)} - {None}
    if given and not all(isinstance(value, str) for value in values):
        others = sorted((each for each in values if isinstance(each, str)), key=len)
        return TypeGuess(TEXT, Reason.of(Code.MIXED, example=json.dumps(next(iter(others or values)))))
    found = type_of_texts({str(value) for value in values})
    if tables[0].kind == "json" and found.reason.code is Code.LONG_NUMBER:
        return TypeGuess(TEXT, Reason(Code.KIND))  # the reader finds a decimal for a number of JSON
    # A text of digits in JSON is a text: only times have no form of their own there.
    is_kept = not given or found.type in (DATE, TIMESTAMP)
    return found if is_kept else TypeGuess(TEXT, Reason(Code.KIND))


def _load(look: Look, overlap: Overlap | None) -> tuple[bool | None, Reason]:
    """Return whether a slice is the whole source, and why; None if that is not known."""
    if len(look.group.slices) == 1:
        return None, Reason(Code.ONE_SLICE)
    if overlap is None:
        return None, Reason(Code.NOT_COMPARED)
    given = {"share": round(overlap.share, 3), "pairs": overlap.pairs}
    if overlap.share >= _AGAIN:
        return True, Reason(Code.SNAPSHOT, given)
    if overlap.share <= _RARELY and overlap.is_whole:
        return False, Reason(Code.INCREMENT, given)
    return None, Reason(Code.OVERLAP, given)


def _strategy(group: Group, key: KeyGuess, is_snapshot: bool | None) -> tuple[str, Reason]:
    """Return the strategy: the one that keeps most, of those for which all that they need is known."""
    if not key.columns:
        return "full", Reason(Code.LOST_ROWS if is_snapshot is False else Code.REPLACED)
    if is_snapshot and group.is_dated:
        return "historic", Reason(Code.WITH_HISTORY)
    return "merge", Reason(Code.NO_DATES if is_snapshot else Code.WITHOUT_HISTORY)


def _findings(look: Look, tables: Sequence[Table]) -> Iterator[Reason]:
    if not look.group.is_dated and look.group.other_date is not None:
        yield Reason.of(Code.OTHER_DATES, example=look.group.other_date)
    yield from look.findings
    seen: list[Reason] = []
    for table in tables:
        seen += (each for each in table.findings if each.code not in [other.code for other in seen])
    yield from seen
    first = tables[0]
    if "encoding" in first.form:
        yield Reason.of(Code.ENCODING, encoding=first.form["encoding"])
    if "header" in first.form:
        yield Reason(Code.NO_HEADER)
    others = {name for table in tables for name in set(table.columns) ^ set(first.columns)}
    if others and first.kind != "json":
        yield Reason.of(Code.OTHER_COLUMNS, columns=sorted(others))


_MOST_QUESTIONS = 10
_MOST_ENTITIES = 200
_ORDER = tuple(QUESTIONS)


@dataclass(frozen=True)
class Profile:
    """What the files of some places show.

    Attributes:
        entities: The entities.
        skipped: The files that are left out.
        questions: What to decide, the most important first; at most ten.
        further: How many more questions there are.
    """

    entities: tuple[EntityProfile, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    questions: tuple[Question, ...] = ()
    further: int = 0


def profile_places(places: Sequence[Place]) -> Profile:
    """Return what the files of places show."""
    entities: list[EntityProfile] = []
    skipped = [each for place in places for each in place.skipped]
    for place in places:
        groups = group_files(place)
        skipped += (Skipped(each.slices[0].name, Reason(Code.TOO_MANY)) for each in groups[_MOST_ENTITIES:])
        looks = [Look.of(group, place) for group in groups[:_MOST_ENTITIES]]
        for look in merged_looks(looks, place):
            skipped += look.skipped
            if any(look.tables):
                entities.append(profile_entity(look))
    named = tuple(_with_own_names(entities))
    asked = sorted(
        (Question(each.name, reason) for each in named for reason in _open_questions(each)),
        key=lambda question: _ORDER.index(question.reason.code),
    )
    further = max(0, len(asked) - _MOST_QUESTIONS)
    return Profile(named, tuple(skipped), tuple(asked[:_MOST_QUESTIONS]), further)


def _with_own_names(entities: Sequence[EntityProfile]) -> Iterator[EntityProfile]:
    """Yield the entities, each with a name of its own."""
    taken: set[str] = set()
    for each in entities:
        name, number = each.name, 2
        while name in taken:
            name, number = f"{each.name}_{number}", number + 1
        taken.add(name)
        yield each if name == each.name else replace(each, group=replace(each.group, name=name))


@dataclass(frozen=True, slots=True)
class Question:
    """What the files do not show, about an entity."""

    entity: str
    reason: Reason

    def as_json(self) -> dict[str, Any]:
        """Return the question as `-o json` prints it."""
        return {"entity": self.entity, **self.reason.as_json()}


def _open_questions(profile: EntityProfile) -> Iterator[Reason]:
    """Yield what only a person can decide about an entity."""
    if profile.why_strategy.code is Code.LOST_ROWS:
        yield profile.why_strategy
    elif not profile.key.columns:
        yield profile.key.reason
    if profile.key.columns and not profile.key.is_sure:
        yield Reason.of(Code.UNSURE_KEY, columns=[*profile.key.columns], **profile.key.reason.params)
    if profile.key.columns and profile.why_load.code in _ORDER:
        yield profile.why_load
    if profile.why_strategy.code is Code.NO_DATES:
        yield profile.why_strategy
    yield from (each for each in profile.findings if each.code in _ORDER)
    by_code: dict[Code, list[tuple[str, TypeGuess]]] = {}
    for name, guess in profile.types.items():
        by_code.setdefault(guess.reason.code, []).append((name, guess))
    for code in (Code.DAY_OR_MONTH, Code.DECIMAL_COMMA, Code.MIXED):
        if found := by_code.get(code):
            example = found[0][1].reason.params.get("example")
            yield Reason.of(code, columns=[name for name, _ in found], example=example)
