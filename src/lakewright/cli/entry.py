"""The entry point of the command line: arguments in, an exit code out, errors as readable messages."""

from __future__ import annotations

import io
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TextIO

import click

from lakewright.cli.call import Call, Opener, open_app
from lakewright.cli.faults import FAILED, WRONG, exit_code, fault_line, faults_of, file_fault, unexpected
from lakewright.cli.group import LazyGroup
from lakewright.cli.options import is_json_wanted
from lakewright.cli.output import Output
from lakewright.errors import Fault, LakewrightError

HERE = "lakewright.cli.commands"
COMMANDS = {
    "job": (f"{HERE}.run:job", "Run a job up to a phase."),
    "plan": (f"{HERE}.apply:plan", "Show what is due, or what a job would do, and why."),
    "apply": (f"{HERE}.apply:apply", "Take every step that is due and needs nobody."),
    "decide": (f"{HERE}.apply:decide", "Say what only a person can say, as `plan` offers it."),
    "process": (f"{HERE}.run:process", "Process the pending slices of an entity."),
    "test": (f"{HERE}.run:test", "Run the project's own tests."),
    "validate": (f"{HERE}.declarations:validate", "Report every error of the project, without Spark."),
    "status": (f"{HERE}.apply:status", "Show what is running, waiting and failed, and what to type next."),
    "manifest": (f"{HERE}.manifest:manifest", "List and operate slices: states, locks, failures."),
    "history": (f"{HERE}.history:history", "List, show and compare runs."),
    "undo": (f"{HERE}.rewind:undo", "Take a slice back out of its table."),
    "rebuild": (f"{HERE}.rewind:rebuild", "Build a silver table again from its slices."),
    "maintain": (f"{HERE}.doctor:maintain", "Compact the files of silver tables."),
    "triggers": (f"{HERE}.triggers:triggers", "List triggers; run, pause or resume one."),
    "watermark": (f"{HERE}.watermark:watermark", "List and set watermarks."),
    "sql": (f"{HERE}.sql:sql", "Query the lake."),
    "ls": (f"{HERE}.declarations:ls", "List what the project declares."),
    "show": (f"{HERE}.declarations:show", "Show one definition of the project."),
    "graph": (f"{HERE}.declarations:graph", "Show the dependencies between a job's targets."),
    "docs": (f"{HERE}.declarations:docs", "Write the project's documentation."),
    "schema": (f"{HERE}.declarations:schema", "Write JSON schemas for editors."),
    "init": (f"{HERE}.init:init", "Write a small project that runs."),
    "demo": (f"{HERE}.init:demo", "Write a project on real data and run it."),
    "serve": (f"{HERE}.serve:serve", "Keep Spark warm, run triggers, show the operator's page."),
    "setup": (f"{HERE}.doctor:setup", "Prepare this machine, so that Spark starts fast."),
    "doctor": (f"{HERE}.doctor:doctor", "Check the machine, the project and one table, with remedies."),
}


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    no_args_is_help=True,
)
@click.version_option(None, "--version", package_name="lakewright", message="%(package)s %(version)s")
def root() -> None:
    """Build and keep a data lake that a project declares in YAML and JSON.

    Examples:
        lakewright demo
        lakewright plan monthly build month=2022-01-01
        lakewright job monthly verify month:start=2022-01-01 month:end=2022-04-01
        lakewright status
    """


def main(argv: Sequence[str] | None = None, *, opener: Opener = open_app, why_cold: str = "") -> int:
    """Run the command line and return the process's exit code.

    Args:
        argv: The arguments; by default those of the process.
        opener: Opens the project; by default with a JVM of this process.
        why_cold: Why it does not run in the project's server, if there is one.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        # A name that this terminal cannot encode must not make printing fail.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    with _reserved_stdout(is_json_wanted(arguments)) as out:
        output = Output(out, sys.stderr, os.environ)
        call = Call(output, os.environ, sys.stdin, opener, leaves_server=True, why_cold=why_cold)
        try:
            return answer(arguments, call)
        except BrokenPipeError:
            # The reader has closed the pipe; data that is still buffered must not raise again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
            return FAILED


def answer(arguments: Sequence[str], call: Call) -> int:
    """Run a command and return its exit code; every error is printed."""
    call.output.is_json = is_json_wanted(arguments)
    try:
        return int(root.main(list(arguments), prog_name="lakewright", standalone_mode=False, obj=call) or 0)
    except click.exceptions.NoArgsIsHelpError as asked:
        call.output.log(asked.format_message())
        return WRONG
    except BrokenPipeError:
        raise
    except (Exception, KeyboardInterrupt) as error:  # every error becomes a readable message
        return _failed(call, error)
    finally:
        call.close()


def _failed(call: Call, error: BaseException) -> int:
    code, faults = _explained(error)
    if call.settings.verbosity > 1:
        call.output.log(call.output.redactor.text(_traceback(error)))
    if call.output.is_json:
        call.output.schema = "lakewright/errors/1"
        call.output.document({"errors": [fault.as_json() for fault in faults]})
    call.output.note(*(fault_line(fault) for fault in faults))
    if len(faults) > 1:
        call.output.note(f"{len(faults)} errors")
    if call.advice:
        call.output.note(call.advice)
    return code


def _traceback(error: BaseException) -> str:
    """Return the traceback without the notes of the error, which is printed below it with what to do."""
    trace = traceback.TracebackException.from_exception(error)
    trace.__notes__ = []
    return "".join(trace.format())


def _explained(error: BaseException) -> tuple[int, Sequence[Fault]]:
    if isinstance(error, LakewrightError):
        return exit_code(error), faults_of(error)
    if isinstance(error, click.UsageError):
        return WRONG, [_usage_fault(error)]
    if isinstance(error, click.ClickException):
        return WRONG, [Fault(error.format_message(), code="usage")]
    if isinstance(error, KeyboardInterrupt | click.Abort):
        number = next((each for each in error.args if isinstance(each, int)), signal.SIGINT)
        return 128 + number, [Fault("interrupted", code="interrupted")]
    if isinstance(error, OSError) and (found := file_fault(error)) is not None:
        return WRONG, [found]
    return FAILED, _faults_of_jvm(error) or [unexpected(error)]


def _faults_of_jvm(error: BaseException) -> Sequence[Fault]:
    """Return the fault of a JVM that has ended, or of a query that failed in it; none for other errors."""
    if "pyspark" not in sys.modules:
        return ()
    from lakewright.lake.spark_errors import query_failure
    from lakewright.spark.jvm import is_jvm_failure, jvm_failure

    if is_jvm_failure(error):
        return faults_of(jvm_failure("the command", error))
    failure = query_failure(error, "while the command ran")
    return () if failure is None else faults_of(failure)


def _usage_fault(error: click.UsageError) -> Fault:
    if isinstance(error, click.NoSuchOption) and error.option_name == "--json":
        return Fault("there is no option --json", remedy="`-o json` gives the result as JSON.", code="usage")
    path = error.ctx.command_path if error.ctx is not None else "lakewright"
    return Fault(error.format_message(), remedy=f"`{path} --help` shows what it takes.", code="usage")


@contextmanager
def _reserved_stdout(is_wanted: bool) -> Iterator[TextIO]:
    """Yield stdout; if it is reserved for one JSON document, everything else written to it goes to stderr.

    The file descriptor itself is redirected, so that this holds for the JVM and for code of the project, too.
    """
    if not is_wanted:
        yield sys.stdout
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    out = os.fdopen(os.dup(kept), "w", encoding="utf-8", errors="backslashreplace")
    try:
        yield out
    finally:
        with suppress(BrokenPipeError):  # the reader has closed the pipe
            out.close()
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
