"""Functions from Python files of a project."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from lakewright.errors import SpecError
from lakewright.spec.suggestions import suggestion

__all__ = ["load_function"]


def load_function(file: Path, name: str) -> Callable[..., Any]:
    """Return a function of a Python file, which is run for that; it isn't importable by others.

    Raises:
        SpecError: There is no such file or function, or the file can't be run.
    """
    if not file.is_file():
        raise SpecError.of(f"there is no Python file {file}")
    spec = spec_from_file_location(f"lakewright_project.{file.stem}", file)
    if spec is None or spec.loader is None:
        raise SpecError.of(f"{file} is no Python file", remedy="Its name ends with .py.")
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever code of the project raises
        raise SpecError.of(f"{file} can't be run: {type(error).__name__}: {error}") from error
    found = getattr(module, name, None)
    if not callable(found):
        functions = [
            each for each, value in vars(module).items() if callable(value) and not each.startswith("_")
        ]
        raise SpecError.of(f"{file} has no function {name!r}", remedy=suggestion(name, functions))
    return found  # type: ignore[no-any-return]  # code of the project has the types that it has
