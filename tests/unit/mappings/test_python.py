"""What errors in the project's Python code say, without an engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.projects import make_workspace

from lakewright.errors import SpecError
from lakewright.workspace.workspace import Workspace

FUNCTIONS = """\
def misspelt():
    return ordres

def refuses():
    return check(0)

def check(rows):
    if not rows:
        raise ValueError("no rows\\nat all")

def silent():
    raise NotImplementedError
"""


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("misspelt", "misspelt ({file}, line 2) failed: NameError: name 'ordres' is not defined"),
        ("refuses", "refuses ({file}, line 9) failed: ValueError: no rows"),
        ("silent", "silent ({file}, line 12) failed: NotImplementedError"),
    ],
)
def test_an_error_in_the_function_is_told_with_mapping_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, said: str
) -> None:
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    monkeypatch.setattr(Workspace, "spark", None)
    mapping = f"mappings: {{m: {{kind: python, file: functions.py, function: {function}}}}}"
    workspace = make_workspace(tmp_path, mapping)
    with pytest.raises(SpecError) as caught:
        workspace.frame("m")
    (fault,) = caught.value.faults
    assert fault.message == f"mapping 'm': {said.format(file=tmp_path / 'functions.py')}"
    assert str(fault.location) == "module.yml:1"
    assert (fault.remedy or "").startswith("Correct the function, or what it reads")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = 1\ny = z\n", "line 2): NameError: name 'z' is not defined"),
        ("x = 1\n\ndef f(:\n", "line 3): SyntaxError: invalid syntax"),
    ],
)
def test_an_error_in_the_file_is_told_with_its_line(tmp_path: Path, code: str, said: str) -> None:
    (tmp_path / "functions.py").write_text(code)
    workspace = make_workspace(tmp_path, "mappings: {m: {kind: python, file: functions.py, function: f}}")
    with pytest.raises(SpecError) as caught:
        workspace.frame("m")
    (fault,) = caught.value.faults
    assert fault.message.startswith("mapping 'm': executing functions.py failed")
    assert fault.message.endswith(said)
    assert fault.remedy
