"""One call of the command line: its options, its output and the project it opens."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from lakewright.cli.options import Settings, global_arguments, repeated_options, takes_despite_faults
from lakewright.cli.output import Output, logging_to
from lakewright.cli.page import Block
from lakewright.errors import SpecError
from lakewright.errors.surfaces import on_terminal
from lakewright.manifest.redaction import Redactor

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.errors import Fault
    from lakewright.spark.session import Sessions


log = logging.getLogger(__name__)

SERVE = "lakewright.serve"
"""The key of the configuration that decides whether commands leave a server behind."""
NO_SERVE = "LAKEWRIGHT_NO_SERVE"

ADVICE = "With --despite-faults, what no fault touches can be used meanwhile."


Opener = Callable[..., "App"]
"""Opens the project that settings name, given the environment and what prints targets' output.

Its option `on_read` receives each file and folder that the project is read from.
"""


def open_app(
    settings: Settings,
    environ: Mapping[str, str],
    say: Callable[[str], None],
    *,
    sessions: Sessions | None = None,
    on_read: Callable[[Path], None] = lambda _: None,
) -> App:
    """Open the project that the settings name; `sessions` starts Spark for it."""
    from lakewright.app import App

    return App.open(
        settings.project,
        profiles=settings.profiles,
        definitions=settings.definitions,
        config=settings.conf,
        environ=environ,
        say=say,
        sessions=sessions,
        overrides=Path.cwd(),
        on_read=on_read,
        despite_faults=settings.despite_faults,
        checks_only=settings.checks_only,
    )


_now = partial(datetime.now, UTC)


@dataclass(slots=True)
class Call:
    """The object that every command receives.

    Attributes:
        ask: The stream that answers to questions are read from.
        opener: Opens the project; tests pass their own.
        leaves_server: Whether it may start a server for the next commands.
        why_cold: Why the command does not run in the project's server, if there is one.
        reports_faults: Whether the faults of a project that is used despite them are printed as notes.
        advice: What to print below the errors with which the command ends.
    """

    output: Output
    environ: Mapping[str, str]
    ask: TextIO
    opener: Opener = open_app
    clock: Callable[[], datetime] = _now
    leaves_server: bool = False
    why_cold: str = ""
    settings: Settings = field(default_factory=Settings)
    reports_faults: bool = True
    advice: str = ""
    _app: App | None = None

    @contextmanager
    def configured(self, settings: Settings) -> Iterator[None]:
        """Apply these settings to output and logging in the `with` block."""
        self.settings = settings
        self.output.is_json = settings.is_json
        self.output.is_quiet = settings.is_quiet
        self.output.redactor = Redactor.of(self.environ)
        self.output.options = repeated_options(settings, self.output.redactor.text)
        with logging_to(
            self.output.log,
            is_json=settings.log_format == "json",
            level=self._level(),
            redacted=self.output.redacted,
            shown=lambda text: on_terminal(text, self.output.options),
        ):
            if self.why_cold and settings.verbosity > 0:
                log.info("this command runs without the project's server: %s", self.why_cold)
            yield

    @property
    def app(self) -> App:
        """The project, opened on first use."""
        if self._app is None:
            self._app = self._opened()
            self.output.redactor = self._app.redactor
            self._note("warning", self._app.warnings)
            if self.settings.despite_faults and self.reports_faults:
                self._note("fault", self._app.project.faults)
        return self._app

    def _opened(self) -> App:
        try:
            return self.opener(self.settings, self.environ, self.output.say)
        except SpecError as error:
            self._note("warning", error.warnings)
            if all(fault.touches for fault in error.faults) and takes_despite_faults():
                self.advice = ADVICE
            raise

    def _note(self, label: str, faults: Iterable[Fault]) -> None:
        self.output.labelled(label, (fault.phrase for fault in faults))

    def accept_faults(self, *, are_reported: bool = True) -> None:
        """Open the project although some of its definitions are faulty; they can't be used.

        Args:
            are_reported: Whether the faults are printed as notes; False if the command's page shows them.
        """
        self.settings, self.reports_faults = replace(self.settings, despite_faults=True), are_reported

    def work_on(self, project: Path) -> None:
        """Open this project instead of the one that the options name."""
        self.settings = replace(self.settings, project=project)
        self.output.options = repeated_options(self.settings, self.output.redactor.text)

    def confirms(self, question: str, refused: str, page: Iterable[Block]) -> bool:
        """Show what would be done; return whether the user wants it; nobody is asked without a terminal."""
        if not self.output.is_json:
            self.output.page(page)
        if self.output.is_json or not self.can_ask:
            self.output.note(refused)
            return False
        return self.asks(question)

    @property
    def can_ask(self) -> bool:
        """Whether a user sees questions and can answer."""
        return self.ask.isatty() and self.output.err.isatty()

    def asks(self, question: str) -> bool:
        """Ask the user, and return whether the answer is yes."""
        self.output.forward(f"{question} [y/N]: ")
        return self.ask.readline().strip().lower() in ("y", "yes")

    def close(self) -> None:
        """Close the project, if it was opened."""
        if self._app is not None:
            is_server_wanted = self.leaves_server and self._is_server_wanted(self._app)
            self._app.close()
            if is_server_wanted:
                self._leave_server(self._app)
            self._app = None

    def _is_server_wanted(self, app: App) -> bool:
        """Return whether the next commands are to find a server: this one had to start Spark by itself."""
        is_alone = self.settings.is_alone or bool(self.environ.get(NO_SERVE))
        if app.project.config.get(SERVE) != "auto" or is_alone:
            return False
        from lakewright.spark.session import OwnSession

        return isinstance(app.sessions, OwnSession) and app.lake.is_started

    def _leave_server(self, app: App) -> None:
        from lakewright.serve.server_files import ServerFiles, start_on_demand

        files = ServerFiles(app.project.basedir)
        if start_on_demand(files, global_arguments(self.settings)):
            log.info("a server is started for the next commands; it stops when it has had nothing to do")

    def _level(self) -> int:
        if self.settings.verbosity < 0:
            return logging.ERROR
        # Where progress is drawn, a log line for each step would repeat it.
        levels = [logging.WARNING if self.output.is_live else logging.INFO, logging.INFO, logging.DEBUG]
        return levels[min(self.settings.verbosity, 2)]
