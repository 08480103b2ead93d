"""A machine that sends slices which nobody chose through the strategies, and through a model in plain Python.

Each step puts one slice before three entities, one of each strategy, which are processed side by side; after
it each table, its metrics and its watermark must be the model's, and its history must be one.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from tests.model.strategies import Model, Record, Refused, Row, canonical
from tests.spark.strategies.bench import WAYS, SmallLake, counts_of, entity, hours, in_way, pa

from lakewright.manifest.verdict import Verdict
from lakewright.plan.permissions import Permissions
from lakewright.schema.sql import name_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.errors import LakewrightError
    from lakewright.slices.result import ProcessResult
    from lakewright.spec.models.entity import Entity


APPLIED: list[str] = []
"""The strategy of every slice that any machine has applied."""

STRATEGIES = ("full", "merge", "historic")

# Key: its columns with their types, and values that are easily taken for one another.
KEYS: dict[str, tuple[tuple[tuple[str, Any], ...], Sequence[tuple[Any, ...]]]] = {
    "number": ((("id", pa.int64()),), [(n,) for n in (0, 1, -1, 7, 10, 2**53, 2**53 + 1, 2**63 - 1)]),
    "text": (
        (("the id", pa.string()),),
        [(t,) for t in ("", "a", "a ", "A", "é", "e\u0301", "\x00", "null")],
    ),
    "double": (
        (("größe`x", pa.float64()),),
        [(f,) for f in (0.0, math.nan, 1.0, -0.0, math.inf, 5e-324, 0.1, 1e22)],
    ),
    "decimal": (
        (("d.1", pa.decimal128(20, 4)),),
        [(Decimal(d),) for d in ("0", "1", "1.5", "15", "-0.0001", "1234567890123456", "10", "0.1")],
    ),
    "instant": (
        (("at", pa.timestamp("us", tz="UTC")),),
        [(datetime(1970 + n, 1, 1, 0, 0, 0, n, tzinfo=UTC),) for n in range(8)],
    ),
    "pair": (
        (("x", pa.string()), ("y", pa.string())),
        [
            *(("a_b", "c"), ("a", "b_c"), (None, "c"), ("c", None)),
            *(("", "c"), (None, None), ("a|b", ""), ("a", "|b")),
        ],
    ),
    "mixed": (
        (("born", pa.date32()), ("raw", pa.binary())),
        [(date(1970, 1, 1 + n // 2), (b"", b"\x00")[n % 2]) for n in range(6)] + [(None, b""), (None, None)],
    ),
    "written": ((("no", pa.string()),), [(t,) for t in ("1", "01", "2", "3", "-4", "5 ", "0", "12")]),
}

CASTS: dict[str, tuple[str, Callable[[str], Any]]] = {"written": ("long", int)}
"""Keys whose columns are declared with another type than the source has: the type, and what casts a value."""


TEXTS: Sequence[Mapping[str, Any]] = [
    {},
    {"s": ""},
    {"s": "ab", "b": b"c"},
    {"s": "a", "b": b"bc"},
    {"s": "\x00 \u2028", "b": b""},
    {"b": b"\x00\xff"},
]
NUMBERS: Sequence[Mapping[str, Any]] = [
    {},
    {"f": 0.0, "d": Decimal("0.00"), "n": 0},
    {"f": -0.0, "d": Decimal("0.00"), "n": 0},
    {"f": math.nan, "n": -(2**31)},
    {"f": math.inf, "d": Decimal("1.50")},
    {"f": 1.5, "d": Decimal("-99999999.99"), "n": 2**31 - 1},
]
NESTED: Sequence[Mapping[str, Any]] = [
    {},
    {"l": [], "m": []},
    {"l": [None], "m": [("k", None)]},
    {"l": [1, None], "m": [("k", 1), ("j", 2)], "t": datetime(1600, 1, 1, 0, 0, 0, 1, tzinfo=UTC)},
    {"l": [1, None], "m": [("j", 2), ("k", 1)], "t": datetime(1600, 1, 1, 0, 0, 0, 1, tzinfo=UTC)},
    {"st": {"x": None, "y": None}, "day": date(1, 1, 1)},
    {"st": {"x": 1, "y": None}, "day": date(9999, 12, 31)},
    {"st": {"x": 1, "y": "z"}},
]
PLAIN: Mapping[str, Any] = {
    "s": pa.string(),
    "b": pa.binary(),
    "f": pa.float64(),
    "l": pa.list_(pa.int32()),
    "m": pa.map_(pa.string(), pa.int64()),
    "t": pa.timestamp("us", tz="UTC"),
    "day": pa.date32(),
}
LOOSE = [None, 1, 2]
WORDS = [None, "1", "x", ""]
"""What column `v` holds where it is a text; where it is a number, only its positions count."""

BIG = 2**40


@dataclass(frozen=True)
class Shape:
    """How a slice's columns differ from the usual ones.

    Attributes:
        dropped: Columns that it lacks.
        has_w: Whether it has a column more.
        is_long: Whether `n` is wider.
        is_fine: Whether `d` has more digits.
        is_number: Whether `v` is a number, which the table takes as a text.
        is_flat: Whether the struct lacks a field.
        is_turned: Whether the columns come in another order.
    """

    dropped: frozenset[str] = frozenset()
    has_w: bool = False
    is_long: bool = False
    is_fine: bool = False
    is_number: bool = False
    is_flat: bool = False
    is_turned: bool = False


@dataclass(frozen=True)
class Sent:
    """A record as it was drawn, by positions in the lists above."""

    key: int
    text: int
    number: int
    nested: int
    word: int
    loose: int
    is_big: bool
    mark: int | None
    part: str | None
    deleted: bool | None
    is_as_before: bool
    sequence: int | None = None
    is_bad: bool = False


SHAPES = st.builds(
    Shape,
    dropped=st.one_of(
        st.just(frozenset[str]()), st.frozensets(st.sampled_from(["f", "l", "s", "m", "st"]), max_size=2)
    ),
    has_w=st.booleans(),
    is_long=st.booleans(),
    is_fine=st.booleans(),
    is_number=st.booleans(),
    is_flat=st.booleans(),
    is_turned=st.booleans(),
)
SENT = st.builds(
    Sent,
    key=st.integers(0, 7),
    text=st.integers(0, len(TEXTS) - 1),
    number=st.integers(0, len(NUMBERS) - 1),
    nested=st.integers(0, len(NESTED) - 1),
    word=st.integers(0, len(WORDS) - 1),
    loose=st.integers(0, len(LOOSE) - 1),
    is_big=st.integers(0, 20).map(lambda n: n == 20),
    mark=st.one_of(st.none(), st.integers(0, 9)),
    part=st.sampled_from([None, "p", "q", 'it\'s "q"']),
    deleted=st.sampled_from([None, False, False, False, True]),
    is_as_before=st.booleans(),
    sequence=st.one_of(st.none(), st.integers(0, 4)),
    is_bad=st.integers(0, 9).map(lambda n: n == 9),
)
_REFUSALS = frozenset({"duplicate_business_key", "schema_drift", "data_loss", "bad_rows"})
"""Codes of the errors of what the model refuses."""

SLICES = st.lists(SENT, min_size=0, max_size=8, unique_by=lambda sent: sent.key)


@dataclass
class Subject:
    """One entity, and its model."""

    strategy: str
    entity: Entity
    model: Model
    has_processed: bool = False


class StrategyMachine(RuleBasedStateMachine):
    """Slices for three entities; see the module.

    Attributes:
        session: In which all machines of a subclass work.
    """

    session: ClassVar[SparkSession]

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="lakewright-machine-"))
        self.lake = SmallLake(self.session, self.root)
        self.subjects: list[Subject] = []
        self.number = 0
        self.before: dict[int, Sent] = {}
        self.pool = ThreadPoolExecutor(len(STRATEGIES))
        self.way = ExitStack()

    def teardown(self) -> None:
        self.pool.shutdown()
        self.way.close()
        shutil.rmtree(self.root, ignore_errors=True)

    @initialize(
        key=st.sampled_from(sorted(KEYS)),
        scope=st.sampled_from([None, "closed", "open", "full"]),
        last_seen=st.sampled_from(["column", "on_change"]),
        policy=st.sampled_from(["evolve", "evolve", "ignore"]),
        is_partitioned=st.booleans(),
        way=st.sampled_from(sorted(WAYS)),
        duplicates=st.sampled_from([None, "refuse", "latest", "latest"]),
        quarantines=st.booleans(),
        first=SLICES,
    )
    def begin(
        self,
        *,
        key: str,
        scope: str | None,
        last_seen: str,
        policy: str,
        is_partitioned: bool,
        way: str,
        duplicates: str | None,
        quarantines: bool,
        first: list[Sent],
    ) -> None:
        self.way.enter_context(in_way(way))
        self.keys, self.values = KEYS[key]
        self.policy = policy
        self.is_sequenced = duplicates is not None
        self.quarantines = quarantines
        sequence = {} if duplicates is None else {"sequence_by": "seq", "duplicates": duplicates}
        cast = CASTS.get(key)
        self.cast = None if cast is None else cast[1]
        declared_key = {"fieldroles": ["businesskey"], **({} if cast is None else {"datatype": cast[0]})}
        keys: list[dict[str, Any]] = [{"name": name, **declared_key} for name, _ in self.keys]
        partition = [{"name": "part", "fieldroles": ["partition"]}] if is_partitioned else []
        for strategy in STRATEGIES:
            infers = scope is not None and strategy != "full"
            inferred = {"delete_missing": True, "delete_scope": scope} if infers else {}
            declared = entity(
                strategy,
                name=f"{strategy}_things",
                columns=[*keys, *partition],
                watermark=[{"column_name": "mark", "expression": "${last_value}"}],
                settings={
                    "last_seen": last_seen,
                    "schema_drift": policy,
                    "hash_exclude": ["loose"],
                    **({"on_bad_rows": "quarantine"} if quarantines else {"null_keys": "allow"}),
                    **inferred,
                    **sequence,
                },
            )
            model = Model(
                strategy,
                scope if strategy != "full" else None,
                last_seen,
                is_partitioned,
                duplicates,
                quarantines,
            )
            self.subjects.append(Subject(strategy, declared, model))
        self._send(first, Shape())

    @rule(slice_=SLICES, shape=SHAPES)
    def send(self, *, slice_: list[Sent], shape: Shape) -> None:
        self._send(slice_, shape)

    @rule(slice_=SLICES)
    def send_as_usual(self, *, slice_: list[Sent]) -> None:
        self._send(slice_, Shape())

    @precondition(lambda self: self.number % 4 == 3)
    @rule(slice_=st.lists(SENT, min_size=1, max_size=4, unique_by=lambda sent: sent.key), twice=SENT)
    def send_a_key_twice(self, *, slice_: list[Sent], twice: Sent) -> None:
        first = replace(slice_[0], is_as_before=False)
        self._send([first, *slice_[1:], replace(twice, key=first.key, is_as_before=False)], Shape())

    @precondition(lambda self: self.is_sequenced and self.number > 1)
    @rule(slice_=st.lists(SENT, min_size=1, max_size=6))
    def send_late(self, *, slice_: list[Sent]) -> None:
        """A slice that is older than those before it, with keys that may occur more than once."""
        self._send([replace(sent, is_as_before=False) for sent in slice_], Shape(), is_late=True)

    @precondition(lambda self: self.number > 0)
    @rule()
    def replay(self) -> None:
        """The last slice once more, at the same time: nothing changes."""
        for subject in self.subjects:
            own = f"/{subject.entity.name}/{self.last}"
            application = self.lake.bench(subject.entity).application
            for item in list(self.lake.items()):
                if item.item_id.endswith(own) and item.verdict(application) is Verdict.PROCESSED:
                    self.lake.ledger.requeue(item.item_id, "again")
        self._process(permissions=Permissions(allow_backdated=True, allow_late=True))
        self._check_tables()

    def _send(self, slice_: list[Sent], shape: Shape, *, is_late: bool = False) -> None:
        self.number += 1
        drawn = [self.before.get(sent.key, sent) if sent.is_as_before else sent for sent in slice_]
        records = [self._record(sent, shape) for sent in drawn]
        table = self._table(drawn, records, shape)
        at, name = 10 * self.number, f"{'r' if is_late else 's'}{self.number}"
        self.last = name
        expected: dict[str, Any] = {}
        for subject in self.subjects:
            self.lake.put(subject.entity, name, table)
            try:
                counts = subject.model.apply(records, at, name, is_late=is_late and subject.has_processed)
                expected[subject.strategy] = asdict(counts)
                subject.has_processed = subject.has_processed or not is_late
            except Refused as refused:
                expected[subject.strategy] = refused
        found = self._process(permissions=Permissions(allow_late=True))
        for subject in self.subjects:
            self._check_result(subject, expected[subject.strategy], found[subject.strategy])
        if not isinstance(expected["merge"], Refused):
            self.before.update({sent.key: sent for sent in drawn})
        self._check_tables()

    def _record(self, sent: Sent, shape: Shape) -> Record:
        """A drawn record as its slice has it, and as the table takes it."""
        values: dict[str, Any] = {**TEXTS[sent.text], **NUMBERS[sent.number], **NESTED[sent.nested]}
        values["v"] = sent.word or None if shape.is_number else WORDS[sent.word]
        if shape.has_w:
            values["w"] = WORDS[sent.word]
        is_big = shape.is_long and sent.is_big
        if is_big:
            values["n"] = BIG
        if shape.is_flat and values.get("st"):
            values["st"] = {"x": values["st"]["x"]}
        values = {name: value for name, value in values.items() if name not in shape.dropped}
        stored = dict(values)
        if shape.is_number and values["v"] is not None:
            stored["v"] = str(values["v"])
        if self.policy == "ignore":
            values.pop("w", None)
            stored.pop("w", None)
        if stored.get("st"):
            stored["st"] = {"x": None, "y": None, **stored["st"]}
        key = self.values[sent.key]
        is_bad = self.quarantines and sent.is_bad
        return Record(
            key=(None,) * len(key) if is_bad else tuple(map(self.cast, key)) if self.cast else key,
            written=key if self.cast and not is_bad else (),
            values=values,
            stored=stored,
            mark=sent.mark,
            part=sent.part,
            loose=LOOSE[sent.loose],
            sequence=sent.sequence,
            deleted=sent.deleted,
            fits=not (is_big and self.policy == "ignore"),
        )

    def _table(self, drawn: list[Sent], records: list[Record], shape: Shape) -> Any:
        schema: dict[str, Any] = {
            **dict(self.keys),
            **PLAIN,
            "v": pa.int64() if shape.is_number else pa.string(),
            "n": pa.int64() if shape.is_long else pa.int32(),
            "d": pa.decimal128(12, 4) if shape.is_fine else pa.decimal128(10, 2),
            "st": pa.struct([("x", pa.int64()), *([] if shape.is_flat else [("y", pa.string())])]),
            "mark": pa.int32(),
            "part": pa.string(),
            "loose": pa.int64(),
            "seq": pa.int32(),
            "dlf_deleted": pa.bool_(),
            **({"w": pa.string()} if shape.has_w else {}),
        }
        names = [name for name in schema if name not in shape.dropped]
        if shape.is_turned:
            names.reverse()
        rows = [
            {
                **{name: value for name, value in record.values.items() if name in schema},
                **({"w": WORDS[sent.word]} if shape.has_w else {}),
                **{
                    name: value
                    for (name, _), value in zip(self.keys, record.written or record.key, strict=True)
                },
                "mark": record.mark,
                "part": record.part,
                "loose": record.loose,
                "seq": record.sequence,
                "dlf_deleted": record.deleted,
            }
            for sent, record in zip(drawn, records, strict=True)
        ]
        return pa.Table.from_pylist(rows, schema=pa.schema([(name, schema[name]) for name in names]))

    def _process(self, **options: Any) -> dict[str, ProcessResult]:
        """Process the last slice for every entity, side by side; what fails is put aside."""
        at = hours(10 * self.number).isoformat()

        def one(subject: Subject) -> ProcessResult:
            return self.lake.process(subject.entity, processing_time=at, **options)

        found = dict(zip(STRATEGIES, self.pool.map(one, self.subjects), strict=True))
        for item in list(self.lake.items()):
            if item.failed is not None:
                resolved = self.lake.ledger.resolve(item.item_id, "refused, as it should be")
                self.lake.ledger.skip(resolved.item_id, "refused, as it should be")
        APPLIED.extend(done.summary.strategy.value for result in found.values() for done in result.slices)
        return found

    def _check_result(self, subject: Subject, expected: Any, found: ProcessResult) -> None:
        if isinstance(expected, Refused):
            errors: tuple[LakewrightError, ...] = found.errors
            assert len(errors) == 1, f"{subject.strategy} took {expected}"
            assert errors[0].code in _REFUSALS, errors[0]
            return
        assert found.error is None, (subject.strategy, found.error)
        (done,) = found.slices
        assert counts_of(done.summary) == expected, subject.strategy

    def _check_tables(self) -> None:
        for subject, rows in zip(self.subjects, self.pool.map(self._read, self.subjects), strict=True):
            if rows is None:
                assert not subject.model.rows
                continue
            assert sorted(map(repr, rows)) == sorted(map(repr, self._expected(subject))), subject.strategy
            if subject.strategy == "historic":
                check_history(subject.model.rows)
            application = self.lake.bench(subject.entity).application
            last = self.lake.ledger.watermarks.last(application).get("mark")
            assert (None if last is None else last.python) == subject.model.last

    def _columns(self, subject: Subject) -> list[str]:
        keys = [column.silver for column in subject.entity.columns if column.is_business_key]
        times = ["dlf_ValidFrom", "dlf_ValidTo", "dlf_IsCurrent"] if subject.strategy == "historic" else []
        system = ["dlf_deleted", "dlf_lastSeen", "dlf_source_filename"]
        return [*keys, *PLAIN, "v", "n", "d", "st", "w", "mark", "part", "loose", "seq", *system, *times]

    def _read(self, subject: Subject) -> list[tuple[Any, ...]] | None:
        """The table's rows, canonical; a column that it lacks is null."""
        if self.lake.version_or_none(subject.entity) is None:
            return None
        frame = self.lake.table(subject.entity)
        kinds = {field.name: field.dataType.typeName() for field in frame.schema.fields}
        columns = self._columns(subject)
        sql = [
            f"unix_micros({name_sql(name)})"
            if kinds.get(name) == "timestamp"
            else name_sql(name)
            if name in kinds
            else "null"
            for name in columns
        ]
        named = (f"{one} as c{n}" for n, one in enumerate(sql))
        found = frame.selectExpr(*named, "dlf_SourceHash rlike '^[0-9a-f]{64}$' as is_hashed").collect()
        assert all(row["is_hashed"] for row in found)
        return [tuple(shown(plain(value)) for value in list(row)[:-1]) for row in found]

    def _expected(self, subject: Subject) -> list[tuple[Any, ...]]:
        return [
            tuple(shown(value) for value in self._values(row, is_historic=subject.strategy == "historic"))
            for row in subject.model.rows
        ]

    def _values(self, row: Row, *, is_historic: bool) -> list[Any]:
        record = row.record
        stored = [record.stored.get(name) for name in (*PLAIN, "v", "n", "d", "st", "w")]
        times = [instant(row.valid_from), instant(row.valid_to), row.is_current] if is_historic else []
        system = [row.deleted, instant(row.seen), row.file]
        return [
            *record.key,
            *stored,
            record.mark,
            record.part,
            record.loose,
            record.sequence,
            *system,
            *times,
        ]


def check_history(rows: list[Row]) -> None:
    """The model's own history is one: what the table is compared with can't be wrong in this way."""
    versions: dict[Any, list[Row]] = {}
    for row in rows:
        versions.setdefault(row.record.identity, []).append(row)
    for each in versions.values():
        each.sort(key=lambda row: row.valid_from or 0)
        ends = [row.valid_to for row in each]
        assert all(end is not None for end in ends[:-1])
        for row, end in zip(each[1:], ends, strict=False):
            assert end is not None
            assert row.valid_from is not None
            assert end <= row.valid_from
        assert all(row.valid_to is None or row.valid_to > (row.valid_from or 0) for row in each)


def instant(hour: int | None) -> datetime | None:
    return None if hour is None else hours(hour)


def plain(value: Any) -> Any:
    """A value as Spark gives it, as the model writes it."""
    if isinstance(value, bytearray):
        return bytes(value)
    if hasattr(value, "asDict"):
        return {name: plain(inner) for name, inner in value.asDict().items()}
    if isinstance(value, dict):
        return [(name, plain(inner)) for name, inner in value.items()]
    return value


def shown(value: Any) -> Any:
    """A value in a form that sorts and prints; instants as microseconds, as tables are read."""
    if isinstance(value, datetime):
        value = (value - datetime(1970, 1, 1, tzinfo=UTC)) // (datetime.resolution)
    found = canonical(value)
    if isinstance(found, tuple) and isinstance(found[1], frozenset):
        return (found[0], sorted(found[1], key=repr))
    return found
