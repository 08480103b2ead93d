"""The folder of a gold table is gone: `status` says so before a run makes it anew."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands import InProcess
from tests.documents import checked
from tests.unit.usecases.staleness.test_downstream import built, lake
from tests.unit.usecases.test_lost_rows import DAYS, emptied

from lakewright.app import App
from lakewright.lake.files import ObjectFiles
from lakewright.usecases.damage import lost_outputs as lost
from lakewright.usecases.damage.lost_outputs import lost_outputs


def built_lake(folder: Path, *present: str) -> App:
    """A lake whose gold was built on three days, of which only some folders are still there."""
    app = lake(folder)
    for number, day in enumerate(DAYS):
        built(app, "daily", ("names", "whole", "added"), hours_ago=9 - number, day=day)
    for name in present:
        (folder / "gold" / name).mkdir(parents=True)
    return app


def test_status_lists_what_was_built_into_a_folder_that_is_gone(tmp_path: Path) -> None:
    app = built_lake(tmp_path, "added")
    names, whole = lost_outputs(app).lost
    assert names.message == (
        f"target 'names': {tmp_path}/gold/names does not exist any more, and 3 instances were built into it: "
        "day=2022-01-01, day=2022-01-02, day=2022-01-03"
    )
    typed = "lakewright job daily build -t names day=2022-01-01,2022-01-02,2022-01-03"
    assert f"before a run creates it anew. Otherwise build it again: `{typed}`." in str(names.remedy)
    # Each instance overwrites the whole folder: only the last one was in it.
    assert whole.details["commands"] == ["lakewright job daily build -t whole day=2022-01-03"]
    app.close()

    shop = InProcess(tmp_path)
    assert "Tables that are gone, or lack what was built 2" in shop.run("status").out
    assert [each["message"] for each in checked(shop.json("status"))["lost"]] == [
        names.message,
        whole.message,
    ]


def test_what_was_never_built_or_was_removed_by_a_run_is_not_missed(tmp_path: Path) -> None:
    app = built_lake(tmp_path, "names", "added", "whole")
    assert lost_outputs(app).lost == ()  # report and merged were never built
    (tmp_path / "gold/added").rmdir()
    emptied(app, "DESTROY", "added", DAYS[-1])
    assert lost_outputs(app).lost == ()
    app.close()


def test_a_folder_that_a_target_drops_is_not_missed(tmp_path: Path) -> None:
    app = built_lake(tmp_path, "names", "whole")
    app.close()
    model = (tmp_path / "model/model.yml").read_text()
    model = model.replace("targets:\n  orders", "targets:\n  gone: {kind: drop, relation: added}\n  orders")
    (tmp_path / "model/model.yml").write_text(model.replace("targets: [report]", "targets: [report, gone]"))
    app = App.open(tmp_path)
    assert lost_outputs(app).lost == ()
    app.close()


def test_a_folder_in_s3_is_looked_for_once_and_not_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = lake(tmp_path)
    app.close()
    model = (tmp_path / "model/model.yml").read_text().replace("gold/", "s3://lake/gold/")
    (tmp_path / "model/model.yml").write_text(model)
    app = App.open(tmp_path)
    for day in DAYS:
        built(app, "daily", ("names", "whole"), day=day)
    asked: list[str] = []

    def exists(_: ObjectFiles, path: str) -> bool:
        asked.append(path)
        return path.endswith("names")

    monkeypatch.setattr(ObjectFiles, "exists", exists)
    found = lost_outputs(app)
    assert sorted(asked) == ["s3://lake/gold/names", "s3://lake/gold/whole"]
    assert [each.details["subject"] for each in found.lost] == ["whole"]
    monkeypatch.setattr(lost, "look_within", lambda looks, _: dict.fromkeys(looks, "takes too long"))
    assert {(each.entity, each.why) for each in lost_outputs(app).unseen} == {
        ("names", "takes too long"),
        ("whole", "takes too long"),
    }
    app.close()
