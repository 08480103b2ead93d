"""The global options, which every command takes before or after its name."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any

import click

from lakewright.errors import UsageError
from lakewright.spec.expressions.secrets import is_secret_name

META = "lakewright.settings"

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Adds an argument, an option or several to the function of a command."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The values of the global options; those after the command override those before it.

    Attributes:
        project: Folder of the project; None means the nearest one from the current folder up.
        definitions: `-D`, values of the project's environment.
        conf: `--conf`, keys of its configuration.
        is_alone: `--no-serve`: the command neither runs in a server nor leaves one behind.
        verbosity: The number of `-v`, or -1 for `-q`.
        despite_faults: Whether definitions are used that no fault of the project's files touches.
        checks_only: Whether they are checked although a fault may concern the whole project.
    """

    project: Path | None = None
    profiles: tuple[str, ...] = ()
    definitions: dict[str, str] = field(default_factory=dict)
    conf: dict[str, str] = field(default_factory=dict)
    output: str = "text"
    log_format: str = "text"
    verbosity: int = 0
    is_alone: bool = False
    despite_faults: bool = False
    checks_only: bool = False

    @property
    def is_json(self) -> bool:
        """Whether the result is printed as one JSON document."""
        return self.output == "json"

    @property
    def is_quiet(self) -> bool:
        """Whether only errors and the last line are printed."""
        return self.verbosity < 0

    def merged(self, name: str, value: Any) -> Settings:
        """Return the settings with one more value: lists and maps are extended, other values replaced."""
        present = getattr(self, name)
        if isinstance(present, tuple):
            value = (*present, *value)
        elif isinstance(present, dict):
            value = {**present, **value}
        return replace(self, **{name: value})


def settings_of(context: click.Context) -> Settings:
    """Return the values of the global options parsed so far."""
    settings = context.meta.get(META)
    return settings if isinstance(settings, Settings) else Settings()


def global_options() -> list[click.Option]:
    """Return the global options, which store their values in the context's settings."""
    return [
        _option(
            "--project", metavar="DIR", type=click.Path(path_type=Path), help="Folder or file of the project."
        ),
        _option("-P", "--profile", "profiles", multiple=True, metavar="NAME", help="Use a profile."),
        _option("-D", "definitions", multiple=True, metavar="K=V", help="Set a value of the environment."),
        _option("--conf", multiple=True, metavar="K=V", help="Set a key of the configuration."),
        _option("-o", "--output", type=click.Choice(["text", "json"]), help="Format of the result."),
        _option("--log-format", type=click.Choice(["text", "json"]), help="Format of log lines on stderr."),
        _option("-v", "--verbose", "verbosity", count=True, help="Log more; -vv logs everything."),
        _option("-q", "--quiet", is_flag=True, help="Print only errors, answers and the last line."),
        _option(
            "--no-serve",
            "is_alone",
            is_flag=True,
            help="Run here, even if the project's server runs.",
        ),
    ]


def stacked(*decorators: Decorator) -> Decorator:
    """Return a decorator that adds the arguments and options of several, in this order."""
    return lambda function: reduce(lambda made, add: add(made), reversed(decorators), function)


def takes_despite_faults() -> bool:
    """Return whether the command that is being run takes `--despite-faults`."""
    context = click.get_current_context(silent=True)
    return context is not None and any(each.name == "despite_faults" for each in context.command.params)


def global_arguments(settings: Settings) -> tuple[str, ...]:
    """Return the arguments that name the same project with the same values."""
    given = [
        *(("--project", str(settings.project.absolute())) if settings.project else ()),
        *(argument for name in settings.profiles for argument in ("-P", name)),
        *(argument for name, value in settings.definitions.items() for argument in ("-D", f"{name}={value}")),
        *(argument for name, value in settings.conf.items() for argument in ("--conf", f"{name}={value}")),
    ]
    return tuple(given)


def is_json_wanted(arguments: Sequence[str]) -> bool:
    """Return whether arguments ask for JSON, even if they cannot be parsed; the last `-o` counts."""
    wanted = "text"
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=False):
        if argument in ("-o", "--output"):
            wanted = following
        elif argument.startswith("--output="):
            wanted = argument.removeprefix("--output=")
        elif argument.startswith("-o") and not argument.startswith("--"):
            wanted = argument.removeprefix("-o")
    return wanted == "json"


def _option(*names: str, **settings: Any) -> click.Option:
    return click.Option(names, expose_value=False, callback=_remember, **settings)


def _remember(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    # An option that is not given must not reset the same option given before the command.
    if not value or parameter.name is None:
        return
    name = parameter.name
    if name == "quiet":
        name, value = "verbosity", -1
    elif name in ("definitions", "conf"):
        value = _assignments(value, parameter.opts[-1])
    context.meta[META] = settings_of(context).merged(name, value)


despite_faults: Decorator = click.option(
    "--despite-faults",
    is_flag=True,
    expose_value=False,
    callback=_remember,
    help="Use what no fault of the project touches.",
)
"""Adds the option `--despite-faults`, which stores its value in the context's settings."""


def _assignments(texts: Sequence[str], option: str) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for (name, sign, _), text in zip(pairs, texts, strict=True):
        if not sign or not name.strip():
            raise UsageError(
                f"{option} {text}: not of the form key=value", remedy=f"Write {option} key=value."
            )
    return {name.strip(): value for name, _, value in pairs}


def repeated_options(settings: Settings, redacted: Callable[[str], str] = str) -> str:
    """Return the options that choose a project and change its definitions, as they must be typed again.

    A secret value becomes `<name>`, which no shell accepts, so that it is filled in.

    Example:
        >>> from pathlib import Path
        >>> repeated_options(Settings(Path("my lake"), ("prod",), {"day": "1", "db_password": "x"}))
        " --project 'my lake' -P prod -D day=1 -D db_password=<db_password>"
    """
    words = [] if settings.project is None else ["--project", shlex.quote(str(settings.project))]
    words += [word for name in settings.profiles for word in ("-P", shlex.quote(name))]
    words += _assigned("-D", settings.definitions, redacted)
    words += _assigned("--conf", settings.conf, redacted)
    return "".join(f" {word}" for word in words)


def _assigned(option: str, values: Mapping[str, str], redacted: Callable[[str], str]) -> Iterator[str]:
    for name, value in values.items():
        yield option
        is_secret = is_secret_name(name) or redacted(value) != value
        yield f"{shlex.quote(name)}=<{name}>" if is_secret else shlex.quote(f"{name}={value}")
