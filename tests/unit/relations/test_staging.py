"""Files that are written beside their place first."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from lakewright.lake.files import LocalFiles
from lakewright.relations.staging import StagedFiles


@pytest.mark.parametrize("error", [RuntimeError("No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_no_folder(tmp_path: Path, error: BaseException) -> None:
    """On a full disk, what was written of the failed write kept the space that others needed."""
    place = str(tmp_path / "gold")
    staged = StagedFiles(LocalFiles(), place, "csv", {})

    def write(_frame: Any, _divided: Any) -> int:
        staged._prepare()
        (tmp_path / ".gold.staged").mkdir()
        (tmp_path / ".gold.staged" / "part.csv").write_text("1")
        raise error

    with mock.patch.object(staged, "_write", write), pytest.raises(type(error)):
        staged.stage(mock.Mock(), (), keeps_empty=False)
    assert list(tmp_path.iterdir()) == []


def test_why_a_write_failed_is_told_if_its_folder_cannot_be_removed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = mock.Mock()
    files.remove.side_effect = OSError("read-only file system")
    staged = StagedFiles(files, str(tmp_path / "gold"), "csv", {})
    with pytest.raises(OSError, match="read-only"):
        staged.stage(mock.Mock(), (), keeps_empty=False)
    with (
        mock.patch.object(staged, "_write", side_effect=RuntimeError("No space left")),
        pytest.raises(RuntimeError, match="No space left"),
    ):
        staged.stage(mock.Mock(), (), keeps_empty=False)
    assert ".gold.staged is left of a write that failed: read-only file system" in caplog.text
