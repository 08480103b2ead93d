"""`lakewright test`: which tests it runs, what it says of them, how it ends."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from tests.documents import checked
from tests.unit.cli.surroundings import FakeApp, call_with, ended, plan_of, result_of, step

from lakewright.errors import Fault, SpecError
from lakewright.plan.status import Status
from lakewright.run.case import AssertionResult, CaseResult

WRONG = Fault("there is no column y", code="sql", remedy="Name x.")

RESULTS = {
    "prices": CaseResult(
        "prices",
        "Those above zero",
        runs=(result_of(ended("prices"), ended("sums")),),
        assertions=(AssertionResult("rows", "sql", Status.SUCCESS, seconds=1.0),),
        seconds=2.0,
    ),
    "load_orders": CaseResult(
        "load_orders",
        runs=(result_of(ended("orders", Status.FAILED, error=WRONG, reasons=("is missing",))),),
        assertions=(
            AssertionResult("rows", "sql", Status.FAILED, failures=("missing (3, 3)",)),
            AssertionResult("broken", "sql", Status.FAILED, "reads y", error=WRONG),
            AssertionResult("later", "sql", Status.SKIPPED),
        ),
        seconds=3.0,
    ),
    "load_none": CaseResult("load_none", seconds=1.0),
}


@dataclass
class TestedApp(FakeApp):
    """A project with tests, whose results are known beforehand."""

    __test__ = False

    ran: list[str] = field(default_factory=list)
    results: Mapping[str, CaseResult] = field(default_factory=lambda: RESULTS)
    stop_after: str = ""

    def __post_init__(self) -> None:
        own = {"targets": ["orders"]}
        tests = {name: SimpleNamespace(raw=own) for name in RESULTS}
        tests["only_a_part"] = SimpleNamespace(raw={"overrideMappings": {}})
        self.project = SimpleNamespace(name="shop", tests=tests, config={})

    @contextmanager
    def rehearsing(self, interruption: Any = None, *, keep_going: bool = False) -> Iterator[Any]:
        self.asked.append(keep_going)

        def run(name: str) -> CaseResult:
            self.ran.append(name)
            if name == self.stop_after:
                interruption.signal = 15
            return self.results[name]

        def ready(name: str) -> Any:
            if name not in self.results:
                raise SpecError.of(f"{name} can't be run")
            return SimpleNamespace(
                run=lambda *_: run(name), plan=lambda: plan_of(step(name, reasons=("a test",)))
            )

        yield ready


@pytest.mark.parametrize(
    ("names", "ran"),
    [
        ((), ["prices", "load_orders", "load_none"]),
        (("prices",), ["prices"]),
        (("load_*",), ["load_orders", "load_none"]),
        (("load_n*", "prices"), ["prices", "load_none"]),
    ],
)
def test_names_choose_tests_and_what_others_only_extend_is_none(
    names: tuple[str, ...], ran: list[str]
) -> None:
    app = TestedApp()
    call_with(app, "test", *names)
    assert app.ran == ran


def test_a_test_that_is_asked_for_by_name_runs_though_others_only_extend_it() -> None:
    app = TestedApp(results={"only_a_part": CaseResult("only_a_part")})
    assert call_with(app, "test", "only_a_part").code == 0


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_an_unknown_name_is_wrong_usage_and_nothing_runs(options: tuple[str, ...]) -> None:
    app = TestedApp()
    answered = call_with(app, "test", "prices", "prizes", *options)
    assert (answered.code, app.ran, app.asked) == (2, [], [])
    assert "there is no test 'prizes'" in answered.err
    assert "did you mean 'prices'?" in answered.err


def test_a_page_tells_what_failed_and_the_last_line_counts() -> None:
    answered = call_with(TestedApp(), "test")
    assert answered.code == 1
    assert answered.last_line == "Tested. PASSED=2 FAILED=1 in 6.0 s"
    for said in (
        "SUCCESS prices: Those above zero 2.0 s",
        "2 targets built and taken away",
        "FAILED BUILD orders: is missing",
        "missing (3, 3)",
        "broken (reads y)",
        "do: Name x.",
        "SKIPPED later not reached",
    ):
        assert said in answered.out


def test_tests_that_hold_end_with_0() -> None:
    assert call_with(TestedApp(), "test", "prices", "load_none").code == 0


def test_results_are_one_document_under_json() -> None:
    answered = call_with(TestedApp(), "test", "-o", "json")
    found = checked(json.loads(answered.out))
    assert (answered.code, found["project"], found["status"]) == (1, "shop", "FAILED")
    assert [test["name"] for test in found["tests"]] == ["prices", "load_orders", "load_none"]
    assert found["tests"][1]["assertions"][1]["error"]["message"] == WRONG.message
    assert found["tests"][0]["targets"][0]["phase"] == "BUILD"


def test_one_that_can_not_be_run_fails_and_the_others_run() -> None:
    app = TestedApp(results={name: RESULTS[name] for name in ("prices", "load_none")})
    found = json.loads(call_with(app, "test", "-o", "json").out)
    assert [test["status"] for test in found["tests"]] == ["SUCCESS", "FAILED", "SUCCESS"]
    assert found["tests"][1]["error"]["message"] == "load_orders can't be run"
    page = call_with(app, "test").out
    assert "error: load_orders can't be run" in page


def test_a_signal_ends_with_its_number_after_the_test_at_hand() -> None:
    app = TestedApp(stop_after="prices")
    assert (call_with(app, "test").code, app.ran) == (143, ["prices"])


@pytest.mark.parametrize("options", [(), ("-k",), ("--keep-going",)])
def test_keep_going_is_passed_on(options: tuple[str, ...]) -> None:
    app = TestedApp()
    call_with(app, "test", *options)
    assert app.asked == [bool(options)]


def test_a_dry_run_lists_what_would_be_built_and_runs_nothing() -> None:
    app = TestedApp()
    answered = call_with(app, "test", "load_*", "--dry-run")
    assert (answered.code, app.ran) == (0, [])
    assert "load_orders" in answered.out
    assert "a test" in answered.out
    found = json.loads(call_with(app, "test", "--dry-run", "-o", "json").out)
    assert [test["status"] for test in found["tests"]] == ["WOULD_RUN"] * 3


def test_a_project_without_tests_has_none_that_fail() -> None:
    app = TestedApp()
    app.project.tests.clear()
    answered = call_with(app, "test")
    assert (answered.code, answered.last_line) == (0, "Tested. PASSED=0 FAILED=0 in 0.0 s")
