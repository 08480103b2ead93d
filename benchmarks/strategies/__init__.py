"""The strategies compared with two scripts without Lakewright: a naive one and an optimised one."""

from benchmarks.strategies.suite import run

__all__ = ["run"]
