"""What the bytes of JSON files show, and where that is not asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakewright.lake.paths import FileEntry
from lakewright.reader.json_look import Look, look_at
from lakewright.reader.source import Source


def look(tmp_path: Path, text: str, *, size: int | None = None) -> Look:
    """Return the look at a file, which has its own size unless another one is given."""
    file = tmp_path / "a.json"
    file.write_text(text)
    entry = FileEntry(file.name, len(text) if size is None else size)
    return look_at(Source("the slice a", str(file), (entry,), "json", is_folder=False), {})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a":1,"b":"x"}\n{"a":2,"b":"y"}\n', Look(False, True, 2, 2)),
        ('{"a":1}\r\n{"a":2}\r\n', Look(False, True, 2, 0)),
        ('{"a":1} {"a":2}\n', Look()),
        ('{"a":1}\n{"a":2', Look()),
        ('{"a":0.12345678901234567}\n', Look(False, False, 1, 0)),
        ('{"a":[1]}\n', Look(False, True, None, 0)),
        ('[{"a":1},{"a":2}]\n', Look(False, True, None, 0)),
        ('{"a":{}}\n', Look(False, True, None, 0)),
        ("\n\n", Look(False, True, None, 0)),
    ],
)
def test_what_the_bytes_show(tmp_path: Path, text: str, found: Look) -> None:
    assert look(tmp_path, text) == found


def test_the_look_is_bounded(tmp_path: Path) -> None:
    """ "Safe and fast": no file is read twice but for a bounded probe."""
    assert look(tmp_path, '{"a":1}\n', size=1 << 31) == Look()
