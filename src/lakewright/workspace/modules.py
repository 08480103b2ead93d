"""Functions of a project's Python files."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from lakewright.errors import SpecError
from lakewright.spec.suggestions import suggestion

__all__ = ["load_function"]


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
        spec.loader.exec_module(module)
    except Exception as error:  # code of the project may raise anything
        raise SpecError.of(f"executing {file} failed: {type(error).__name__}: {error}") from error
    found = getattr(module, name, None)
    if not callable(found):
        functions = [
            each for each, value in vars(module).items() if callable(value) and not each.startswith("_")
        ]
        raise SpecError.of(f"{file} has no function {name!r}", remedy=suggestion(name, functions))
    return found  # type: ignore[no-any-return]  # code of the project is untyped
