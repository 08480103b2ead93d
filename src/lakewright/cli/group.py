"""Commands with global options anywhere, and groups that import commands lazily.

The help of a command is its docstring: what it does, and after the options the lines below `Examples:`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib import import_module
from inspect import cleandoc
from typing import Any

import click

from lakewright.cli.call import Call
from lakewright.cli.options import global_options, settings_of
from lakewright.spec.suggestions import suggestion

HELP_OPTIONS = ["-h", "--help"]
LONGEST_SHORT_HELP = 100
WITHOUT_SCHEMA = frozenset(("maintain", "manifest stats", "manifest acquire", "manifest renew"))
"""Commands whose documents are objects of names, or are given back to other commands."""
SHARED_TITLE = "Options of every command"
CONTEXT = {"help_option_names": HELP_OPTIONS, "max_content_width": 100}


class _WithGlobalOptions(click.Command):
    """A command that takes the global options and lists its own options before them."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        settings.setdefault("context_settings", CONTEXT)
        super().__init__(*args, **settings)
        self.help, _, self.examples = cleandoc(self.help or "").partition("\nExamples:\n")
        self.global_options = global_options()

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's own parameters, the global options and `--help`."""
        return [*super().get_params(ctx), *self.global_options]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write two sections: the options of this command, then those of every command."""
        own = [each for each in super().get_params(ctx) if isinstance(each, click.Option)]
        _write_options(ctx, formatter, "Options", own)
        _write_options(ctx, formatter, SHARED_TITLE, self.global_options)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples.splitlines():
                    formatter.write(f"{'':{formatter.current_indent}}{example.strip()}\n")


class Command(_WithGlobalOptions):
    """A command whose function gets the `Call` and returns an exit code, or None for 0."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command with output and logging configured by the global options."""
        call: Call = ctx.obj
        call.output.schema = _schema_of(ctx)
        with call.configured(settings_of(ctx)):
            return super().invoke(ctx)


def _schema_of(ctx: click.Context) -> str | None:
    """Return the name of the form of a command's JSON document; see `docs/reference/json.md`."""
    name = ctx.command_path.partition(" ")[2]
    return None if name in WITHOUT_SCHEMA else f"lakewright/{name.replace(' ', '-')}/1"


class LazyGroup(_WithGlobalOptions, click.Group):
    """A group that imports a command only when it is used, and lists commands in the order given.

    Args:
        lazy: For each command its location, as in `"lakewright.cli.commands.job:job"`, and its line in the
            list of commands, which is shown without importing any.
    """

    def __init__(
        self, *args: Any, lazy: Mapping[str, tuple[str, str]] | None = None, **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self._lazy = dict(lazy or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        own = (name for name in super().list_commands(ctx) if not self.commands[name].hidden)
        return [*self._lazy, *own]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with this name, or None."""
        if cmd_name not in self._lazy:
            return super().get_command(ctx, cmd_name)
        module, _, name = self._lazy[cmd_name][0].partition(":")
        found: click.Command = getattr(import_module(module), name)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the name of each command with one line about it."""
        found = (each for each in self.commands.items() if not each[1].hidden)
        own = {name: each.get_short_help_str(LONGEST_SHORT_HELP) for name, each in found}
        with formatter.section("Commands"):
            lazy = [(name, text) for name, (_, text) in self._lazy.items()]
            formatter.write_dl([*lazy, *own.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the named command; the error for an unknown command suggests similar names."""
        known = {*self._lazy, *super().list_commands(ctx)}
        if args and not args[0].startswith("-") and args[0] not in known:
            ours = _command_for(args) if ctx.parent is None else None
            near = suggestion(args[0], self.list_commands(ctx), shown=40)
            near = near if ours is None else f"for Flowman's `{' '.join(args[:2])}`, use {ours}"
            raise click.UsageError(f"there is no command {args[0]!r}; {near}", ctx)
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, then the options."""
        self.format_commands(ctx, formatter)
        super().format_options(ctx, formatter)

    def add(self, name: str, *, hidden: bool = False) -> Callable[[Callable[..., Any]], Command]:
        """Return a decorator that makes a function a command of this group."""

        def decorated(function: Callable[..., Any]) -> Command:
            made = command(function)
            made.hidden = hidden
            self.add_command(made, name)
            return made

        return decorated


def command(function: Callable[..., Any]) -> Command:
    """Make a function of the `Call` a command with the global options."""
    return click.command(cls=Command)(click.pass_obj(function))


def group(function: Callable[..., Any]) -> LazyGroup:
    """Make a function of the `Call` a group, which runs it without a subcommand."""

    @click.pass_context
    @wraps(function)
    def run(context: click.Context, /, **given: Any) -> Any:
        if context.invoked_subcommand is not None:
            return None
        call: Call = context.obj
        with call.configured(settings_of(context)):
            return function(call, **given)

    return click.group(cls=LazyGroup, invoke_without_command=True)(run)


def _write_options(
    ctx: click.Context, formatter: click.HelpFormatter, title: str, params: Sequence[click.Parameter]
) -> None:
    records = [record for record in (param.get_help_record(ctx) for param in params) if record is not None]
    if records:
        with formatter.section(title):
            formatter.write_dl(records)


_COMMANDS = {
    ("project", "validate"): "lakewright validate",
    ("project", "inspect"): "lakewright ls",
    ("project", "list"): "lakewright ls jobs",
    ("project",): "lakewright job JOB PHASE for each job",
    ("job", "list"): "lakewright ls jobs",
    ("job", "inspect"): "lakewright show job NAME",
    ("target", "list"): "lakewright ls targets",
    ("target", "inspect"): "lakewright show target NAME",
    ("target", "dependencies"): "lakewright graph JOB",
    ("target",): "lakewright job JOB PHASE -nl -t NAME",
    ("mapping", "list"): "lakewright ls mappings",
    ("mapping", "inspect"): "lakewright show mapping NAME",
    ("mapping", "show"): 'lakewright sql "SELECT * FROM mapping.NAME"',
    ("mapping", "describe"): 'lakewright sql "DESCRIBE mapping.NAME"',
    ("mapping", "count"): 'lakewright sql "SELECT count(*) FROM mapping.NAME"',
    ("mapping", "explain"): 'lakewright sql "EXPLAIN SELECT * FROM mapping.NAME"',
    ("mapping", "validate"): "lakewright validate",
    ("mapping", "dependencies"): "lakewright graph JOB",
    ("mapping",): "lakewright show mapping NAME, or lakewright sql",
    ("relation", "list"): "lakewright ls relations",
    ("relation", "inspect"): "lakewright show relation NAME",
    ("relation", "show"): 'lakewright sql "SELECT * FROM gold.NAME"',
    ("relation", "describe"): 'lakewright sql "DESCRIBE gold.NAME"',
    ("relation", "count"): 'lakewright sql "SELECT count(*) FROM gold.NAME"',
    ("relation",): "lakewright job JOB PHASE -nl -t TARGET, with the target that writes it",
    ("model",): 'lakewright ls relations, lakewright sql "SELECT * FROM gold.NAME"',
    ("history",): "lakewright history, lakewright history show RUN",
    ("test",): "lakewright test",
    ("documentation",): "lakewright docs",
    ("namespace",): "lakewright show connection NAME",
    ("info",): "lakewright doctor",
    ("version",): "lakewright --version",
    ("shell",): "lakewright sql, or Python: lakewright.Project.load()",
}
"""By the words of Flowman's command; a single word stands for all its other subcommands."""


def _command_for(words: Sequence[str]) -> str | None:
    """Return the command that does what a command of Flowman does, or None if Flowman has no such command.

    Example:
        >>> _command_for(["mapping", "count", "stations"])
        'lakewright sql "SELECT count(*) FROM mapping.NAME"'
    """
    return _COMMANDS.get(tuple(words[:2])) or _COMMANDS.get(tuple(words[:1]))
