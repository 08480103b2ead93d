"""Empty manifests for sessions, one after the other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from uuid import uuid4

import psycopg
from tests.stores.cluster import programs, running_cluster
from tests.stores.dynamodb_local import REGION, running_dynamodb

Make = Callable[[], dict[str, Any]]


@contextmanager
def manifests(kinds: Sequence[str]) -> Iterator[Mapping[str, Make]]:
    """Yield, for each kind of back end, what makes the settings of an empty manifest."""
    with ExitStack() as stack:
        yield {kind: KINDS[kind](stack) for kind in kinds}


def _sqlite(_stack: ExitStack) -> Make:
    return lambda: {"kind": "sqlite"}


def _postgres(stack: ExitStack) -> Make:
    server = os.environ.get("LAKEWRIGHT_TEST_POSTGRES")
    if not server:
        found = programs()
        if found is None:
            raise RuntimeError("PostgreSQL isn't installed, and LAKEWRIGHT_TEST_POSTGRES names no server")
        server = stack.enter_context(running_cluster(found)).url

    def make() -> dict[str, Any]:
        schema = f"lakewright_{uuid4().hex}"
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {schema}".encode())
        return {"kind": "postgres", "url": f"{server}?options=-csearch_path%3D{schema}"}

    return make


def _dynamodb(stack: ExitStack) -> Make:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        os.environ.setdefault(name, "tests")
    address = stack.enter_context(running_dynamodb())
    at = {"kind": "dynamodb", "region": REGION, "endpoint_url": address}
    return lambda: {**at, "table": f"lakewright-{uuid4().hex}"}


def _delta(_stack: ExitStack) -> Make:
    return lambda: {"kind": "delta", "location": "manifest"}


KINDS: Mapping[str, Callable[[ExitStack], Make]] = {
    "sqlite": _sqlite,
    "postgres": _postgres,
    "dynamodb": _dynamodb,
    "delta": _delta,
}
"""Kinds of back ends."""
