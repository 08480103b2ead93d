"""Run the project's own tests, in a temporary folder and with a temporary manifest."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

from lakewright.app import App
from lakewright.errors import LakewrightError, UsageError
from lakewright.lake.lake import Lake
from lakewright.plan.permissions import Permissions
from lakewright.plan.step import Plan
from lakewright.run.case import CaseResult, CaseRun, redirected_lake, redirects_of
from lakewright.run.execute import Interruption, Listener
from lakewright.run.session_settings import settings_of_tests
from lakewright.spec.loading.case_setup import set_up_case
from lakewright.spec.suggestions import suggestion
from lakewright.stores.memory import MemoryStore
from lakewright.target_contexts import target_contexts
from lakewright.targets.context import RunOptions

__all__ = ["plan_tests", "rehearsal", "run_tests", "select_tests"]


def select_tests(app: App, names: Sequence[str] = ()) -> list[str]:
    """Return the names of the project's tests that match these patterns; without patterns, all tests.

    A test that exists only for others to extend is left out unless a pattern matches it.

    Raises:
        UsageError: A pattern matches no test.
    """
    known = list(app.project.tests)
    for name in names:
        if not fnmatch.filter(known, name):
            raise UsageError(f"there is no test {name!r}", remedy=suggestion(name, known))
    if not names:
        return [name for name in known if not _is_only_extended(app, name)]
    return [name for name in known if any(fnmatch.fnmatchcase(name, each) for each in names)]


def run_tests(
    app: App,
    names: Sequence[str],
    *,
    listener: Listener,
    interruption: Interruption,
    keep_going: bool = False,
) -> Iterator[CaseResult]:
    """Run tests one after the other and yield each result, until a signal interrupts them.

    The project's lake, manifest and history are not touched. With `keep_going`, assertions are checked even
    if the build failed or another assertion raised an error.
    """
    with rehearsal(app, interruption, keep_going=keep_going) as case_run:
        for name in names:
            if interruption.signal is not None:
                return
            try:
                yield case_run(name).run(app.holder, listener, interruption)
            except LakewrightError as error:
                yield CaseResult(name, error=error.as_fault())


def plan_tests(app: App, names: Sequence[str]) -> list[Plan]:
    """Return what each test would build.

    Raises:
        SpecError: A test is not declared correctly.
    """
    with rehearsal(app) as case_run:
        return [case_run(name).plan() for name in names]


def _is_only_extended(app: App, name: str) -> bool:
    raw = app.project.tests[name].raw
    return not any(raw.get(key) for key in ("targets", "fixtures", "assertions", "extends"))


@contextmanager
def rehearsal(
    app: App, interruption: Interruption | None = None, *, keep_going: bool = False
) -> Iterator[Callable[[str], CaseRun]]:
    """Yield a function that prepares a test by name; tests write to a folder that is removed afterwards."""
    # Spark may still write to the folder while it is removed; what is left then goes at the end.
    with TemporaryDirectory(prefix="lakewright-test-", ignore_cleanup_errors=True) as folder:
        session = settings_of_tests(app.project, Path(folder))
        shared = Lake(app.project.lake, session, sessions=app.sessions, storage=app.lake.storage)
        try:
            yield partial(_case_run, app, Path(folder), shared, interruption, keep_going=keep_going)
        finally:
            shared.stop()
    rmtree(folder, ignore_errors=True)


def _case_run(
    app: App, folder: Path, shared: Lake, interruption: Interruption | None, name: str, *, keep_going: bool
) -> CaseRun:
    setup = set_up_case(app.project, name)
    store = MemoryStore()
    options = RunOptions(permissions=Permissions(allow_data_loss=True))
    return CaseRun(
        stage=setup,
        lake=redirected_lake(shared, redirects_of(setup, shared, folder / f"test-{name}")),
        journal=app.journal_of(store),
        context=target_contexts(app, options, store, interruption),
        clock=app.clock,
        environ=app.environ,
        keep_going=keep_going,
    )
