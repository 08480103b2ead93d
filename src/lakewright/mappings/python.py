"""The `python` mapping: calls a Python function of the project."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field as Declared

from lakewright.errors import LakewrightError, SpecError
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.cluster import check_python
from lakewright.lake.frames import holds_arrow
from lakewright.lake.spark_errors import query_failure, reason_with_position
from lakewright.mappings.mapping import Input, Mapping
from lakewright.spark.engine import engine_of
from lakewright.spec.models.base import Listed, RefersTo
from lakewright.spec.models.text_marks import FileText
from lakewright.spec.suggestions import suggestion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace


_LOADING = Lock()
"""Held while a file is executed: two threads that import the same packages at once may get parts of them."""


class PythonMapping(Mapping):
    """Returns the result of a Python function, called with a frame per input and with `arguments`.

    The function should neither read nor write anything else. Its session is that of an input,
    `src.sparkSession`.
    """

    file: Annotated[str, FileText.OF_PROJECT] = Declared(description="Python file with the function.")
    function: str = Declared(description="Name of the function, which returns a DataFrame.")
    function_inputs: Annotated[Listed[Input], RefersTo.MAPPING] = Declared(
        default=(), alias="inputs", description="Mappings whose frames it receives, in order."
    )
    arguments: dict[str, Any] = Declared(
        default_factory=dict, description="Additional named arguments, as text."
    )

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return the function's frame.

        Raises:
            SpecError: The function does not exist, does not accept the arguments, raises an error, or returns
                no frame.
            TargetError: A query of Spark that it ran failed.
            SparkUnavailable: The frame runs Python on executors of a cluster that can't.
        """
        from pyspark.sql import DataFrame as Frame

        file = workspace.project_path(self.file)
        function: Callable[..., Any] = load_function(file, self.function)
        frames = [workspace.frame(name) for name in self.function_inputs]
        try:
            inspect.signature(function).bind(*frames, **self.arguments)
        except TypeError as error:
            raise SpecError.of(
                f"{self.function} does not accept its inputs: {error}",
                remedy="Add a parameter for each of `inputs` and each of `arguments`.",
                subject=self.label,
            ) from error
        active = engine_of(workspace.spark).active(workspace.spark)
        with active, _translated(self.label, self.function, file):
            found = function(*frames, **self.arguments)
        if not isinstance(found, Frame):
            raise no_frame(self.label, self.function, found)
        check_python(workspace.lake, found, self.label)
        return found


def no_frame(subject: str, function: str, found: object) -> SpecError:
    """Return the error of a function that returned something else than a DataFrame of Spark."""
    kind = type(found).__name__
    if not isinstance(found, type) and holds_arrow(found):
        kind = f"a {kind} of {type(found).__module__.partition('.')[0]}"
    return SpecError.of(
        f"{function} gave {kind}, not a DataFrame of Spark",
        remedy="Return a DataFrame of Spark: of an input `src`, `src.sparkSession.createDataFrame(…)` makes "
        "one of rows or of a DataFrame of pandas.",
        subject=subject,
    )


@contextmanager
def _translated(subject: str, function: str, file: Path) -> Iterator[None]:
    """Raise what the project's function raises as an error with the mapping, the file and the line.

    Raises:
        SpecError: The function raised an error.
        LakewrightError: A query of Spark failed in it, or the error is one of Lakewright's.
    """
    try:
        yield
    except LakewrightError:
        raise
    except Exception as error:  # code of the project may raise anything
        place = f"{function}{_place(error, file)}"
        said = _said(error)
        if not _is_of_code(error):
            failure = query_failure(error, f"while {subject} ran {place}")
            if failure is not None:
                raise failure from error
        raise SpecError.of(
            f"{place} failed: {said}",
            remedy=Phrase(
                "Correct the function, or what it reads, then run again; ",
                Command("validate", "--spark"),
                " calls it, too.",
            ),
            subject=subject,
        ) from error


def _said(error: Exception) -> str:
    text = error.msg if isinstance(error, SyntaxError) else reason_with_position(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _is_of_code(error: Exception) -> bool:
    """Return whether an error is one of the code: Python raised it, or Spark rejected a query in it."""
    from pyspark.errors import AnalysisException

    return isinstance(error, (AnalysisException, TypeError, ValueError, AttributeError, LookupError))


def _place(error: Exception, file: Path) -> str:
    """Return the file, and the last line of it that led to the error."""
    if isinstance(error, SyntaxError) and error.lineno is not None and error.filename == str(file):
        return f" ({file}, line {error.lineno})"
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)
    ]
    return f" ({file}, line {lines[-1]})" if lines else f" ({file})"


def load_function(file: Path, name: str) -> Callable[..., Any]:
    """Return a function of a Python file, which is executed but not added to the importable modules.

    Raises:
        SpecError: The file or the function doesn't exist, or executing the file fails.
    """
    if not file.is_file():
        raise SpecError.of(f"there is no Python file {file}")
    spec = spec_from_file_location(f"lakewright_project.{file.stem}", file)
    if spec is None or spec.loader is None:
        raise SpecError.of(f"{file} is not a Python file", remedy="The name of a Python file ends with .py.")
    module = module_from_spec(spec)
    try:
        with _LOADING:
            spec.loader.exec_module(module)
    except Exception as error:  # code of the project may raise anything
        remedy = None
        if isinstance(error, ModuleNotFoundError):
            remedy = (
                "Only installed packages can be imported: install this one; put what lies beside the file "
                "into the file, or make it a package of your own (pip install -e)."
            )
        raise SpecError.of(
            f"executing {file.name} failed{_place(error, file)}: {_said(error)}",
            remedy=remedy or "Correct the file; it is executed before its function is called.",
        ) from error
    found = getattr(module, name, None)
    if not callable(found):
        functions = [
            each for each, value in vars(module).items() if callable(value) and not each.startswith("_")
        ]
        raise SpecError.of(f"{file} has no function {name!r}", remedy=suggestion(name, functions))
    return found  # type: ignore[no-any-return]  # code of the project is untyped
