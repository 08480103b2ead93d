"""Which tests run in the same worker: those of a file, and in `make test` all that work with slices alone."""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

__all__ = ["TOGETHER", "ByWork", "scope_of"]

TOGETHER = "tests/spark/strategies"
"""A folder whose files run in one worker, one after the other.

Half of the processor time of Spark's tests is Java's compiler. Comparing, folding, undoing and quarantining
slices is compiled once if one JVM does it all, and twice if two do. The folder takes a third of `make test`,
so the other worker has enough to do meanwhile.
"""


def scope_of(nodeid: str) -> str:
    """Return what runs in one worker with a test: its file, or the folder `TOGETHER`.

    Example:
        >>> scope_of("tests/unit/test_a.py::test_b[x::y]")
        'tests/unit/test_a.py'
        >>> scope_of("tests/spark/strategies/test_a.py::test_b")
        'tests/spark/strategies'
    """
    file = nodeid.partition("::")[0]
    return TOGETHER if file.startswith(f"{TOGETHER}/") else file


class ByWork(LoadFileScheduling):  # type: ignore[misc]
    """Hands out tests by `scope_of`."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)
