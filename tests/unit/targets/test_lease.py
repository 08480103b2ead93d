from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from time import sleep

import pytest
from tests.contexts import make_context
from tests.projects import make_workspace

from lakewright.errors import LeaseHeld, LeaseLost
from lakewright.lake.lake import Lake
from lakewright.manifest.lease import LEASE
from lakewright.manifest.store import Put, Write
from lakewright.plan.resource import Resource
from lakewright.stores.memory import MemoryStore
from lakewright.targets.lease import hold_leases, lease_key, leased_resource

PARTITION = {"year": "2022", "name": "a b"}


@pytest.mark.parametrize(
    "resource",
    [
        Resource.file("/lake/x"),
        Resource.file("/lake/[x]/*/y", PARTITION),
        Resource.file("s3a://bucket/lake", PARTITION),
        Resource.table("gold.Sales", PARTITION),
    ],
)
def test_a_lease_key_names_its_resource(resource: Resource) -> None:
    assert leased_resource(lease_key(resource)) == resource


def test_lease_keys_of_items_are_not_resources() -> None:
    assert leased_resource("file:///lake/bronze/x/2022.parquet") is None


WHOLE = frozenset({Resource.table("t")})


@pytest.mark.parametrize(
    ("other", "is_free"),
    [
        (Resource.table("T"), False),
        (Resource.table("t", {"p": "1"}), False),
        (Resource.table("u"), True),
        (Resource.file("/t"), True),
    ],
)
def test_another_run_cannot_lease_a_part_of_a_leased_resource(
    tmp_path: Path, other: Resource, is_free: bool
) -> None:
    store, workspace = MemoryStore(), make_workspace(tmp_path, "")
    ours, theirs = (make_context(workspace, store=store, run_id=run) for run in ("one", "two"))
    with hold_leases(ours, WHOLE):
        if is_free:
            with hold_leases(theirs, frozenset({other})):
                pass
        else:
            with pytest.raises(LeaseHeld), hold_leases(theirs, frozenset({other})):
                pass
    with hold_leases(theirs, frozenset({other})):
        pass
    assert list(store.documents(LEASE)) == []


class Cancelling(Lake):
    """Records which jobs are cancelled."""

    def __init__(self, like: Lake) -> None:
        super().__init__(like.settings, like.session)
        self.cancelled: list[str | None] = []

    def cancel_jobs(self, tag: str | None = None) -> None:
        self.cancelled.append(tag)


def test_a_lost_lease_cancels_jobs_and_prevents_commits(
    tmp_path: Path,
) -> None:
    store, workspace = MemoryStore(), make_workspace(tmp_path, "")
    lake = workspace.lake = Cancelling(workspace.lake)
    context = make_context(workspace, store=store, lease=timedelta(milliseconds=150))

    def write() -> None:
        with lake.tagging_jobs("the step"), hold_leases(context, WHOLE):
            lake.check_commit()
            take_over(store)
            while not lake.cancelled:
                sleep(0.01)
            with pytest.raises(LeaseLost):
                lake.check_commit()
            raise RuntimeError("the job was cancelled")

    with pytest.raises(LeaseLost) as caught:
        write()
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert lake.cancelled == ["the step"]
    lake.check_commit()  # what holds no lease is free to


def take_over(store: MemoryStore) -> None:
    (lease,) = store.documents(LEASE)
    store.write(Write(puts=(Put(LEASE, lease.key, {**lease.value, "token": "another's"}, lease.version),)))


def test_a_lease_is_released_after_a_failure(tmp_path: Path) -> None:
    store, workspace = MemoryStore(), make_workspace(tmp_path, "")
    with pytest.raises(ValueError, match="broken"), hold_leases(make_context(workspace, store=store), WHOLE):
        raise ValueError("broken")
    assert list(store.documents(LEASE)) == []
