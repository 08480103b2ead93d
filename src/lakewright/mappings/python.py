"""The `python` mapping: calls a Python function of the project."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field as Declared

from lakewright.errors import SpecError
from lakewright.lake.executor_python import check_python
from lakewright.lake.frames import active_session
from lakewright.mappings.mapping import Input, Mapping
from lakewright.spec.models.base import Listed, Reference
from lakewright.spec.models.text_marks import FileText
from lakewright.spec.suggestions import suggestion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["PythonMapping", "load_function"]


_LOADING = Lock()
"""Held while a file is executed: two threads that import the same packages at once may get parts of them."""


class PythonMapping(Mapping):
    """Returns the result of a Python function, called with a frame per input and with `arguments`.

    The function should only describe the computation and neither read nor write anything else: anything it
    accesses other than its inputs is ignored when targets are ordered and tainted.
    """

    file: Annotated[str, FileText.OF_PROJECT] = Declared(
        description="Python file with the function, relative to the project's folder."
    )
    function: str = Declared(description="Name of the function; it takes DataFrames and returns a DataFrame.")
    function_inputs: Listed[Input] = Declared(
        default=(), alias="inputs", description="Mappings whose frames it receives, in order."
    )
    arguments: dict[str, Any] = Declared(
        default_factory=dict, description="Additional named arguments, as text."
    )

    def references(self) -> Iterable[Reference]:
        """Return the inputs."""
        return [
            Reference("mapping", name, ("inputs", index)) for index, name in enumerate(self.function_inputs)
        ]

    def versions(self, workspace: Workspace) -> dict[str, str] | None:
        """Return the text of the file."""
        return {f"code of {self.name}": workspace.read_file(self.file)}

    def _located(self, workspace: Workspace) -> AbstractContextManager[None]:
        """Leave errors of the function as they are: their traceback has the line of the code."""
        del workspace
        return nullcontext()

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return the function's frame.

        Raises:
            SpecError: The function does not exist, does not accept the arguments, or returns no frame.
            SparkUnavailable: The frame runs Python on executors of a cluster that can't.
        """
        from pyspark.sql import DataFrame as Frame

        function: Callable[..., Any] = load_function(workspace.project_path(self.file), self.function)
        frames = [workspace.frame(name) for name in self.function_inputs]
        try:
            inspect.signature(function).bind(*frames, **self.arguments)
        except TypeError as error:
            raise SpecError.of(
                f"mapping {self.name!r}: {self.function} does not accept its inputs: {error}",
                remedy="Add a parameter for each of `inputs` and each of `arguments`.",
            ) from error
        with active_session(workspace.spark):
            found = function(*frames, **self.arguments)
        if not isinstance(found, Frame):
            raise SpecError.of(
                f"mapping {self.name!r}: {self.function} gave {type(found).__name__}",
                remedy="Return a DataFrame from the function.",
            )
        check_python(workspace.lake, found, f"mapping {self.name!r}")
        return found


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
            f"executing {file} failed: {type(error).__name__}: {error}", remedy=remedy
        ) from error
    found = getattr(module, name, None)
    if not callable(found):
        functions = [
            each for each, value in vars(module).items() if callable(value) and not each.startswith("_")
        ]
        raise SpecError.of(f"{file} has no function {name!r}", remedy=suggestion(name, functions))
    return found  # type: ignore[no-any-return]  # code of the project is untyped
