"""The `python` mapping: a function of the project's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from pydantic import Field as Declared

from lakewright.errors import SpecError
from lakewright.mappings.mapping import Input, Mapping
from lakewright.spec.models.base import Listed, Reference
from lakewright.workspace.modules import load_function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["PythonMapping"]


class PythonMapping(Mapping):
    """Gives what a Python function makes of its inputs' frames, one argument each, and of `arguments`.

    The function should only describe what is to be computed, and neither read nor write anything else:
    what it touches beside its inputs is unknown to order and taint.
    """

    file: str = Declared(description="Python file with the function, below the project's folder.")
    function: str = Declared(description="Name of the function: DataFrames in, a DataFrame out.")
    function_inputs: Listed[Input] = Declared(
        default=(), alias="inputs", description="Mappings whose frames it is given, in order."
    )
    arguments: dict[str, Any] = Declared(
        default_factory=dict, description="Further arguments by name, as texts."
    )

    def references(self) -> Iterable[Reference]:
        """Return the inputs."""
        return [
            Reference("mapping", name, ("inputs", index)) for index, name in enumerate(self.function_inputs)
        ]

    def versions(self, workspace: Workspace) -> dict[str, str] | None:
        """Return the text of the file."""
        return {f"code of {self.name}": workspace.read_file(self.file)}

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return the function's frame.

        Raises:
            SpecError: There is no such function, it doesn't take these arguments, or gives no frame.
        """
        from pyspark.sql import DataFrame as Frame

        function: Callable[..., Any] = load_function(workspace.file(self.file), self.function)
        frames = [workspace.frame(name) for name in self.function_inputs]
        try:
            inspect.signature(function).bind(*frames, **self.arguments)
        except TypeError as error:
            raise SpecError.of(
                f"mapping {self.name!r}: {self.function} doesn't take its inputs: {error}",
                remedy="Give it a parameter for each of `inputs`, and one for each of `arguments`.",
            ) from error
        found = function(*frames, **self.arguments)
        if not isinstance(found, Frame):
            raise SpecError.of(
                f"mapping {self.name!r}: {self.function} gave {type(found).__name__}",
                remedy="Let it return a DataFrame.",
            )
        return found
