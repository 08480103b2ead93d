"""Discovery and reading of a project's files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from lakewright.errors import Fault, Location, UsageError
from lakewright.errors.phrase import Command, Option, Phrase
from lakewright.spec.reading.json_reader import LONGEST as LONGEST_JSON
from lakewright.spec.reading.json_reader import read_json
from lakewright.spec.reading.parsed_file import ParsedFile
from lakewright.spec.reading.yaml_reader import LONGEST as LONGEST_YAML
from lakewright.spec.reading.yaml_reader import read_yaml

PROJECT_FILE = "project.yml"
DOCUMENTATION_FILE = "documentation.yml"
OVERRIDES_FILE = ".flowman-env.yml"
"""A user's own environment and configuration, in the folder where a command is run, as Flowman reads them."""

PROJECT_FILES = (PROJECT_FILE, "project.yaml")
"""Names of a project's file; of several, the first one counts."""

NAMESPACE_FILES = ("default-namespace.yml", "namespace.yml")
"""Names of Flowman's file of settings for all projects, which isn't read."""

NO_PROJECT = Phrase(
    "Go to a project's folder, name it with ",
    Option("--project"),
    ", or make one with ",
    Command("init"),
    ".",
)
"""What to do where there is no project."""

YAML_ENDINGS = (".yml", ".yaml")
MOST_FILES = 10_000


def find_modules(
    basedir: Path, modules: Sequence[str], document: ParsedFile
) -> tuple[tuple[Path, ...], tuple[Fault, ...]]:
    """Return the files of the modules, and a fault for each missing one.

    The modules keep their order. The files of a folder are sorted by name.
    """
    found: dict[Path, None] = {}
    faults: list[Fault] = []
    for index, module in enumerate(modules):
        path = basedir / module
        try:
            files = tuple(_files_of(path, basedir))
        except OSError as error:
            why = f"module {module!r} cannot be read: {error.strerror}"
            remedy = "Give the user who runs Lakewright access to it."
            faults.append(Fault(why, document.at(("modules", index)), remedy))
            continue
        found.update(dict.fromkeys(files))
        if not path.exists() or (path.is_file() and not files):
            why = "has none of the extensions .yml, .yaml, .json" if path.exists() else "does not exist"
            remedy = "Create it, or remove it from `modules`."
            faults.append(Fault(f"module {module!r} {why}", document.at(("modules", index)), remedy))
    if len(found) > MOST_FILES:
        faults.append(Fault(f"the modules contain more than {MOST_FILES} files", document.at(("modules",))))
    return tuple(found)[:MOST_FILES], tuple(faults)


def _files_of(path: Path, basedir: Path) -> Iterator[Path]:
    if path.is_file():
        candidates = [path]
    else:
        # `Path.glob` leaves out a folder that can't be read.
        candidates = sorted(inner for inner in path.iterdir() if inner.is_file()) if path.is_dir() else []
    own = {basedir / name for name in (*PROJECT_FILES, *NAMESPACE_FILES, DOCUMENTATION_FILE)}
    for candidate in candidates:
        is_hidden = candidate.name.startswith(".") and candidate is not path
        if candidate.suffix.lower() in (*YAML_ENDINGS, ".json") and candidate not in own and not is_hidden:
            yield candidate


def read_document(path: Path, basedir: Path) -> tuple[ParsedFile, tuple[Fault, ...]]:
    """Return a YAML or JSON file, and its faults. A file that is too large is not opened."""
    file = _shown(path, basedir)
    is_json = path.suffix.lower() == ".json"
    longest = LONGEST_JSON if is_json else LONGEST_YAML
    try:
        size = path.stat().st_size
        if size > longest:
            return _unread(file, f"the file has {size} bytes, but {longest} is the limit", "Split it.")
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        return _unread(file, "the file is not text in UTF-8", "Save it as UTF-8.")
    except OSError as error:
        is_denied = isinstance(error, PermissionError)
        remedy = "Give the user who runs Lakewright access to it." if is_denied else None
        return _unread(file, f"the file cannot be read: {error.strerror}", remedy)
    return read_json(text, file) if is_json else read_yaml(text, file)


def _unread(file: str, message: str, remedy: str | None) -> tuple[ParsedFile, tuple[Fault, ...]]:
    return ParsedFile.empty(file), (Fault(message, Location(file), remedy),)


def _shown(path: Path, basedir: Path) -> str:
    """Return the name of a file in errors: relative to the project if the file lies inside or beside it."""
    beside = basedir.parent
    if path.is_relative_to(basedir):
        return path.relative_to(basedir).as_posix()
    return f"../{path.relative_to(beside).as_posix()}" if path.is_relative_to(beside) else path.as_posix()


def project_file(place: Path) -> Path:
    """Return the file of the project in a folder, whether or not it exists; a file is the project's file."""
    if place.is_file():
        return place
    return next((place / name for name in PROJECT_FILES if (place / name).is_file()), place / PROJECT_FILE)


def find_project(start: Path) -> Path:
    """Return the nearest folder from `start` upwards that holds a project.

    Raises:
        UsageError: There is none.
    """
    for folder in (start.absolute(), *start.absolute().parents):
        if project_file(folder).is_file():
            return folder
    raise UsageError(f"there is no {PROJECT_FILE} in {start.absolute()} or above", remedy=NO_PROJECT)
