"""The strategies against two scripts without the tool: as a newcomer writes it, and as good as it gets."""

from benchmarks.strategies.suite import run

__all__ = ["run"]
