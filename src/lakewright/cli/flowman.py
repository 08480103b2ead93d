"""Commands of Flowman's `flowexec`, with those that do the same here."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["command_for"]

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


def command_for(words: Sequence[str]) -> str | None:
    """Return the command that does what a command of Flowman does, or None if Flowman has no such command.

    Example:
        >>> command_for(["mapping", "count", "stations"])
        'lakewright sql "SELECT count(*) FROM mapping.NAME"'
    """
    return _COMMANDS.get(tuple(words[:2])) or _COMMANDS.get(tuple(words[:1]))
