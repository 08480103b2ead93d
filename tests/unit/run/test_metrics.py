"""Metrics: what targets measure, chosen and named by a job's board, as JSON and for Prometheus."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from tests.unit.run.bench import Bench, FakeTarget

from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.run.hooks.call import HttpCall
from lakewright.run.metrics import Published, as_json, as_prometheus, measured
from lakewright.run.result import InstanceResult, PhaseResult, TargetResult

TARGETS = {"a": {"writes": "/a/$day"}, "b": {"reads": "/a/$day", "writes": "/b/$day"}}
RANGE = ("day:start=2022-01-01", "day:end=2022-01-02")

BOARD = {
    "labels": {"status": "${status}", "day": "$day", "of": "${project.name}"},
    "metrics": [
        {
            "name": "output_records",
            "selector": {
                "name": "target_rec.*",
                "labels": {"category": "target", "kind": "fa.*", "phase": "BUILD"},
            },
            "labels": {"output": "${name}", "during": "${phase}"},
        },
        {"selector": {"labels": {"category": "job"}}, "labels": {"job": "$name"}},
    ],
}


def document(bench: Bench, name: str = "out.json") -> Any:
    return json.loads((bench.folder / name).read_text())


def test_a_board_chooses_renames_and_labels(tmp_path: Path) -> None:
    bench = Bench(tmp_path, TARGETS)
    bench.write(TARGETS, {"metrics": BOARD}, ["lakewright.metrics.json=out.json"])
    bench.world.versions["/b/2022-01-01"] = 1
    bench.world.broken.add("b")

    bench.run(Phase.VERIFY, *RANGE, keep_going=True)

    written = document(bench)
    assert {key: written[key] for key in ("run_id", "project", "job", "phase", "status")} == {
        "run_id": "run-1",
        "project": "fake",
        "job": "daily",
        "phase": "VERIFY",
        "status": "FAILED",
    }
    records = [each for each in written["metrics"] if each["name"] == "output_records"]
    assert [each["labels"] for each in records] == [
        {"status": "FAILED", "day": day, "of": "fake", "output": "a", "during": "BUILD"}
        for day in ("2022-01-01", "2022-01-02")
    ]
    assert records[0]["parameters"] == {"day": "2022-01-01"}
    runtimes = [each for each in written["metrics"] if each["name"] == "job_runtime"]
    assert [each["labels"]["status"] for each in runtimes] == ["FAILED", "FAILED", "FAILED", "FAILED"]
    (run,) = bench.journal.runs()
    assert run.facts["metrics"] == written["metrics"]


def test_without_a_board_all_is_written_as_it_is_and_none_of_it_is_kept(tmp_path: Path) -> None:
    bench = Bench(tmp_path, TARGETS)
    bench.write(TARGETS, {}, ["lakewright.metrics.prometheus=metrics/"])

    bench.run(Phase.BUILD)

    lines = (tmp_path / "metrics" / "fake-daily.prom").read_text().splitlines()
    assert "# TYPE target_records gauge" in lines
    own = 'category="target",kind="fake",name="a",phase="BUILD",project="fake",version="1"'
    assert f"target_records{{{own}}} 1" in lines
    assert [path.name for path in (tmp_path / "metrics").iterdir()] == ["fake-daily.prom"]
    (run,) = bench.journal.runs()
    assert "metrics" not in run.facts


def test_metrics_are_sent_to_a_push_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """E14: Flowman's sink for Prometheus; a gateway that doesn't answer is a warning."""
    sent: list[HttpCall] = []
    monkeypatch.setattr(HttpCall, "make", lambda call, _: sent.append(call))
    bench = Bench(tmp_path, TARGETS)
    bench.write(TARGETS, {}, ["lakewright.metrics.pushgateway=http://gateway:9091/"])
    bench.run(Phase.BUILD)
    (call,) = sent
    assert (call.method, call.url) == ("PUT", "http://gateway:9091/metrics/job/fake/instance/daily")
    assert "# TYPE target_records gauge" in str(call.body)

    def refuse(*_: object) -> None:
        raise OSError("nobody answers")

    monkeypatch.setattr(HttpCall, "make", refuse)
    bench.run(Phase.BUILD)
    assert "nobody answers" in caplog.text


def test_what_can_not_be_written_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(tmp_path, TARGETS)
    bench.write(TARGETS, {"metrics": BOARD}, ["lakewright.metrics.json=model.yml/out.json"])

    assert bench.run(Phase.BUILD).status is Status.SUCCESS
    assert "out.json can't be written" in caplog.text


def test_a_wrong_label_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    board = {"labels": {"x": "$nowhere"}, "metrics": {"selector": {"name": ".*"}}}
    bench = Bench(tmp_path, TARGETS, {"metrics": board})

    assert bench.run(Phase.BUILD).status is Status.SUCCESS
    assert "unknown name 'nowhere'" in caplog.text


def test_measures_have_their_labels(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"m": {"kind": "fake", "phases": "verify"}})
    bench.write({"m": {"phases": "verify"}}, {}, ["lakewright.metrics.json=out.json"])
    taken = {
        "rows": [
            {"value": 3, "labels": {"measure": "stats", "country": "NL"}},
            {"value": None, "labels": {"measure": "stats", "country": "BE"}},
        ],
        "slices": [{"slice": "1", "inserted": 2}],
        "is_new": True,
    }

    def act(target: FakeTarget, context: Any, phase: Phase) -> Outcome:
        return Outcome(metrics=taken)

    bench.world.act = act

    bench.run(Phase.VERIFY)

    own = [each for each in document(bench)["metrics"] if not each["name"].endswith("_runtime")]
    assert [
        (each["name"], each["value"], each["labels"]["name"], each["labels"]["country"]) for each in own
    ] == [("rows", 3, "stats", "NL")]


def test_a_measure_target_gives_metrics_of_measures() -> None:
    target = TargetResult("m", "measure", Phase.VERIFY, Status.SUCCESS, seconds=0.5, metrics={"rows": 3})
    instance = InstanceResult({}, (PhaseResult(Phase.VERIFY, (target,), seconds=2),))

    found = [
        (each.name, each.labels["category"], each.labels["kind"], each.value)
        for each in measured(instance, {}, "j")
    ]

    assert found == [
        ("job_runtime", "job", "job", 2000),
        ("target_runtime", "target", "measure", 500),
        ("rows", "measure", "sql", 3),
    ]


def published(metric: str, value: float, **labels: str) -> Published:
    return Published(metric, labels, value, Status.SUCCESS, {})


def test_prometheus_gets_names_that_it_takes_and_each_series_once() -> None:
    text = as_prometheus(
        [
            published("rows read", 1, **{"of-what": 'a "b"\n\\c'}),
            published("2nd", math.inf),
            published("x", 1.5, name="a"),
            published("x", 2, name="a"),
            published("nan", math.nan),
        ]
    )

    assert text.splitlines() == [
        "# TYPE _2nd gauge",
        "_2nd +Inf",
        "# TYPE nan gauge",
        "nan NaN",
        "# TYPE rows_read gauge",
        'rows_read{of_what="a \\"b\\"\\n\\\\c"} 1',
        "# TYPE x gauge",
        'x{name="a"} 2',
    ]


def test_numbers_that_json_lacks_are_null() -> None:
    assert json.loads(as_json({}, [published("x", math.nan)]))["metrics"][0]["value"] is None
