"""CSV is read as Python's csv module reads it: for slices and relations, in every form (rules of reading)."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.projects import make_workspace
from tests.reading import local_reading
from tests.sessions import same
from tests.spark.relations.relations import rows
from tests.spark.strategies.bench import SmallLake, entity

from lakewright.errors import SchemaDriftError, SliceError, TargetError
from lakewright.lake.paths import FileEntry
from lakewright.reader import lines as reader
from lakewright.reader.files import read_csv
from lakewright.reader.source import FileFault, Form, Source
from lakewright.slices.quarantine import quarantine_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.spec.models.entity import Entity

SIGNS = ["a", "b1", "Zoë", " ", ",", ";", "|", '"', "'", "\n", "\r\n", "\r", "€", "\t", "\\", "日本"]
LATIN = [sign for sign in SIGNS if sign not in ("€", "日本")]
FORMS: list[dict[str, Any]] = [
    {},
    {"separator": ";"},
    {"separator": "\t", "encoding": "utf-16"},
    {"encoding": "latin-1", "quote": "'", "escape": "'"},
    {"escape": "\\"},
    {"separator": "|", "header": False},
]


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> SmallLake:
    return SmallLake(spark, tmp_path)


def read(lake: SmallLake, paths: list[Path], form: Form) -> list[dict[str, str | None]]:
    files = tuple(FileEntry(path.name, path.stat().st_size) for path in paths)
    source = Source("the files", str(paths[0].parent), files, "csv", is_whole=False)
    lake.spark.conf.set("spark.sql.legacy.javaCharsets", "false")
    return [row.asDict() for row in read_csv(local_reading(lake.spark, source, form)).collect()]


def write(path: Path, header: list[str], table: list[list[str]], form: Form, rng: random.Random) -> None:
    """Write a file with Python's writer, with line ends and quotes as it may have them."""
    end = rng.choice(["\n", "\r\n", "\r"])
    is_bare = end != "\r" and form.escape == form.quote and rng.random() < 0.5
    if is_bare and end == "\n":  # without quotes, a carriage return before a line feed is a part of it
        table = [[value.rstrip("\r") for value in row] for row in table]
    text = io.StringIO(newline="")
    writer = csv.writer(
        text,
        delimiter=form.separator,
        quotechar=form.quote,
        doublequote=form.escape == form.quote,
        escapechar=None if form.escape == form.quote else form.escape,
        lineterminator=end,
        quoting=csv.QUOTE_MINIMAL if is_bare else csv.QUOTE_ALL,
    )
    writer.writerows([header, *table] if form.header else table)
    mark = b"\xef\xbb\xbf" if form.is_utf8 and rng.random() < 0.3 else b""
    content = mark + text.getvalue().encode(form.encoding)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    table[:] = [row[:] for row in table]


@pytest.mark.parametrize(
    "seed",
    [
        *range(len(FORMS)),
        *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(len(FORMS), 12 * len(FORMS))),
    ],
)
def test_what_python_writes_is_read(lake: SmallLake, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    form = Form("csv", **FORMS[seed % len(FORMS)])
    signs = LATIN if form.encoding == "latin-1" else SIGNS
    expected, paths = [], []
    for number in range(5):
        width = rng.randint(1, 4)
        names = rng.sample(["id", "näme", "a b", "c,d", "x"], width)
        if not form.header:
            names = [f"_c{place}" for place in range(width)]
        table = [
            ["".join(rng.choices(signs, k=rng.randint(0, 4))) for _ in names]
            for _ in range(rng.randint(1, 9))
        ]
        if number % 2:  # most files hold no line breaks
            table = [[value.translate({10: "", 13: ""}) for value in row] for row in table]
        table = [[value.rstrip("\r") for value in row] for row in table]
        paths.append(tmp_path / f"{number}.csv{'.gz' if number == 4 else ''}")
        write(paths[-1], names, table, form, rng)
        expected += [dict(zip(names, row, strict=True)) for row in table]
    found = read(lake, paths, form)
    columns = sorted({name for row in found for name in row})
    assert columns == sorted({name for row in expected for name in row})

    def key(row: dict[str, Any]) -> list[str]:
        return [row.get(name) or "" for name in columns]

    # An empty text is null.
    assert sorted(map(key, found)) == sorted(map(key, expected))


def test_files_that_python_cannot_read_are_searched_by_a_query(
    lake: SmallLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = {
        "plain 1.csv": b'id,v\nA,"b, ""c"""\n',
        "broken.csv": b'id,v\r\nB,"two\nlines"\r\n',
        "return.csv": b"v,id\nx\ry,C\n",
        "packed.csv.deflate": zlib.compress(b"id,v,w\nD,d,e\n"),
        "alone.csv": b"id,other\n",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    monkeypatch.setattr(reader, "is_near", lambda _path: False)
    paths = [tmp_path / name for name in contents]
    found = sorted((row["id"], row["v"], row["w"]) for row in read(lake, paths, Form("csv")))
    assert found == [
        ("A", 'b, "c"', None),
        ("B", "two\nlines", None),
        ("C", "x\ry", None),
        ("D", "d", "e"),
    ]
    for name, content, code in (
        ("open.csv", b'id,v\nA,"two\nB,x\n', "open_quote"),
        ("latin.csv", b"id,v\nA,Zo\xeb\n", "undecodable"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SliceError) as raised:
            read(lake, [tmp_path / name], Form("csv"))
        fault = raised.value.__cause__
        assert isinstance(fault, FileFault)
        assert (fault.code, fault.path) == (code, str(tmp_path / name))


def put(lake: SmallLake, things: Entity, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        file = Path(things.places(lake.lake.settings).bronze, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def test_files_of_a_slice_may_differ(lake: SmallLake) -> None:
    """Rules of reading, "Two steps" and "Places"; parts without content have no rows."""
    things = entity(name="parts", settings={"format": "csv"})
    put(
        lake,
        things,
        {
            "s1/a.csv": b"id,v\n1,a\n",
            "s1/b.csv": "\ufeffv, id \r\nb,2\r\n".encode(),
            "s1/c.csv": b"id,w\r3,c\r",
            "s1/header.csv": b"id,unwanted\n",
            "s1/mark.csv": b"\xef\xbb\xbf",
            "s1/breaks.csv": b"\r\n\r\n",
            "s1/nothing.csv": b"",
        },
    )
    assert lake.process(things).error is None
    assert lake.rows(things, "id", "v", "w") == [("1", "a", None), ("2", "b", None), ("3", None, "c")]
    assert lake.warnings == []
    assert "unwanted" not in lake.table(things).columns

    put(lake, things, {"s2/a.csv": b"id,v\n4,d\n", "s2/b.csv": b"id,v,V\n5,e,f\n"})
    error = lake.process(things).error
    assert isinstance(error, SchemaDriftError)
    assert "b.csv: its header has the column 'V' twice" in error.message


def test_a_record_with_a_wrong_number_of_fields_is_one_bad_row(lake: SmallLake) -> None:
    strict = entity(name="strict", settings={"format": "csv"})
    aside = entity(name="aside", settings={"format": "csv", "on_bad_rows": "quarantine"})
    for things in (strict, aside):
        put(lake, things, {"s1.csv": b'id,v\n1,"a\nb"\n2\n3,c\n4,5,6\n'})
    error = lake.process(strict).error
    assert isinstance(error, SliceError)
    assert "s1.csv, line 4: the row does not parse; s1.csv, line 6: the row" in error.message
    (done,) = lake.process(aside).slices
    assert (done.summary.quarantined, done.summary.inserted) == (2, 2)
    put_aside = Path(quarantine_folder(lake.lake, aside, "s1.csv"), "rows.json").read_text().splitlines()
    assert [json.loads(line)["record"] for line in put_aside] == ["2", "4,5,6"]


@pytest.mark.parametrize(
    ("header", "shown"),
    [
        (
            "id\u00a0,v",
            "it has 'id\\u00a0', 'v'; 'id\\u00a0' differs from 'id' only in characters that cannot be",
        ),
        ("\u200bid,v", "'\\u200bid' differs from 'id' only in characters that cannot be seen"),
    ],
)
def test_what_cannot_be_seen_in_a_header_is_shown(lake: SmallLake, header: str, shown: str) -> None:
    things = entity(name="unseen", settings={"format": "csv"})
    put(lake, things, {"s1.csv": f"{header}\n1,a\n".encode()})
    assert shown in str(lake.process(things).error)


def test_names_in_another_unicode_form_are_named(lake: SmallLake) -> None:
    columns = [{"name": "id", "fieldroles": ["businesskey"]}, {"name": "Größe"}]
    things = entity(name="formed", columns=columns, settings={"format": "csv"})
    put(lake, things, {"s1.csv": "id,Gro\u0308ße\n1,a\n".encode()})
    error = lake.process(things).error
    assert "only in the Unicode form of its characters" in str(error)
    kept = entity(name="kept", settings={"format": {"kind": "csv", "trim_names": False}})
    put(lake, kept, {"s1.csv": b" id,v\n1,a\n"})
    assert "' id' differs from 'id' only in characters" in str(lake.process(kept).error)


RELATIONS = """
relations:
  commented:
    kind: file
    location: commented
    options: {header: true, comment: "#", nullValue: "-", sep: ";"}
    schema: {fields: [{name: id, type: integer}, {name: v, type: string}]}
  inferred: {kind: file, location: inferred, options: {header: true, inferSchema: true, samplingRatio: "1.0"}}
  lines: {kind: file, location: lines, options: {header: true, lineSep: "|"}}
  whole: {kind: file, location: whole, options: {header: true, multiLine: true}}
  foreign: {kind: file, location: foreign, options: {header: true, encoding: windows-1252, quote: "'"}}
  kept:
    kind: file
    location: kept
    options: {header: true}
    schema:
      fields: [{name: id, type: integer}, {name: v, type: string}, {name: _corrupt_record, type: string}]
  strict:
    kind: file
    location: kept
    options: {header: true}
    schema: {fields: [{name: id, type: integer}, {name: v, type: string}]}
  alike:
    kind: file
    location: alike
    options: {header: true}
    schema: {fields: [{name: id, type: integer}, {name: v, type: string}]}
  divided: {kind: file, location: divided, options: {header: true}, partitions: [{name: code, type: string}]}
  deep: {kind: file, location: deep, options: {header: true}}
  deep_json: {kind: file, format: json, location: deep_json}
  packed: {kind: file, location: packed, options: {header: true, encoding: ISO-8859-1}}
"""


def test_options_of_relations(tmp_path: Path, spark: SparkSession) -> None:
    for name, content in {
        "commented/a.csv": b"# it's made\nid;v\n1;-\n# not\n2;b\n",
        "commented/b.csv": b"v;id\nc;3\n",
        "inferred/a.csv": b" id ,v\n1,a\n",
        "inferred/b.csv": b"v,id\nb,2\n",
        "lines/a.csv": b"id,v|1,a\nb|2,c|",
        "whole/a.csv": b"id,v\r\n1,'a\r\n2,b\rc\r\n",
        "foreign/a.csv": "id,v\n1,'it''s 5 €'\n".encode("cp1252"),
        "kept/a.csv": b'id,v\n1,a\n2\n3,"c\nd"\n',
        "kept/b.csv": b"v,id\nx,y\ne,4\n",
        "alike/a.csv": "v,id\u00a0\na,1\n".encode(),
        "divided/code=01/a.csv": b"id\n1\n",
        "deep/a.csv": b"id\n1\n",
        "deep/05/01/b.csv": b"id\n2\n",
        "deep_json/a.json": b'{"id": 1}',
        "deep_json/05/b.json": b'{"id": 2}',
        "packed/a.csv": gzip.compress(b"id\n1\n"),
        "divided/code=02/b.csv": b"v,id\nb,2\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    workspace = make_workspace(tmp_path, RELATIONS, sessions=same(spark))

    def found(name: str) -> list[tuple[object, ...]]:
        return rows(workspace.relation(name).read(workspace))

    assert found("commented") == [("1", None), ("2", "b"), ("3", "c")]
    assert found("inferred") == [("1", "a"), ("2", "b")]
    assert workspace.relation("inferred").read(workspace).dtypes == [("id", "int"), ("v", "string")]
    assert found("lines") == [("1", "a\nb"), ("2", "c")]
    assert found("whole") == [("1", "'a"), ("2", "b\rc")]
    assert found("foreign") == [("1", "it's 5 €")]
    assert found("divided") == [("1", None, "01"), ("2", "b", "02")]
    assert found("deep") == found("deep_json") == [("1",), ("2",)]
    with pytest.raises(TargetError, match=r"a\.csv is compressed with gzip, which its name does not say"):
        workspace.relation("packed").read(workspace)
    kept = workspace.relation("kept").read(workspace).collect()
    assert sorted((row.v or "", row._corrupt_record) for row in kept) == [
        ("", "2"),
        ("a", None),
        ("c\nd", None),
        ("e", None),
        ("x", "x,y"),
    ]
    strict = workspace.relation("strict").read(workspace)
    with pytest.raises(Exception, match="MALFORMED"):
        strict.select("v").collect()  # also if a query needs few columns
    with pytest.raises(TargetError, match=r"'id\\u00a0', which only looks like the declared column 'id'"):
        workspace.relation("alike").read(workspace)
