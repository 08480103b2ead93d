"""`lakewright show`: secrets are hidden as runs hide them; `-q` hides no answer."""

from __future__ import annotations

from pathlib import Path

from tests.commands import InProcess


def test_the_defaults_of_secret_parameters_and_the_headers_of_hooks_are_hidden(tmp_path: Path) -> None:
    (tmp_path / "project.yml").write_text("name: shop\nmodules: [m.yml]\nlake: {root_folder: lake}\n")
    (tmp_path / "m.yml").write_text(
        """
mappings: {rows: {kind: values, columns: {k: int}, records: [[1]]}}
targets: {out: {kind: console, input: {kind: mapping, mapping: rows}}}
jobs:
  daily:
    parameters: [{name: api_key, default: hush1}, {name: country, default: nl}]
    targets: [out]
    hooks:
      - kind: rest
        url: http://a/x
        headers: {Authorization: Bearer hush2, X-Api-Key: hush3, Accept: json}
"""
    )
    lake = InProcess(tmp_path)
    for told in (lake.run("show", "job", "daily"), lake.run("show", "job", "daily", "-o", "json")):
        assert told.code == 0, told.all
        assert "hush" not in told.all
        assert all(text in told.out for text in ("api_key", "nl", "Authorization", "***", "Accept"))


def test_an_answer_is_printed_with_q_too(tmp_path: Path) -> None:
    assert InProcess(tmp_path).run("init", "lake").code == 0
    lake = InProcess(tmp_path / "lake")
    for words in (
        ("sql", "SHOW TABLES"),
        ("ls", "jobs"),
        ("status",),
        ("history",),
        ("manifest", "ls"),
        ("manifest", "stats"),
        ("watermark", "ls"),
    ):
        told = lake.run("-q", *words)
        assert told.code == 0, told.all
        assert told.out, words
    assert lake.run("-q", "validate").out == ""
