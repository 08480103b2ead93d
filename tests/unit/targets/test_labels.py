"""The labels that select targets.

`lifecycles-and-phases.md`, "Jobs & Lifecycles" (active targets).
"""

from __future__ import annotations

from pathlib import Path

from tests.projects import make_workspace

from lakewright.targets.target import Target

PROJECT = """
connections: {erp: {}}
entities:
  orders: {id: 1, connection: erp, processtype: full, group: AVW, connectiongroup: finance}
  stock: {id: 2, connection: erp, processtype: full}
targets:
  orders: {kind: entity, entity: orders, metadata: {labels: {team: sales}}}
  stock: {kind: entity, entity: stock}
"""


def test_an_entitys_groups_are_labels_of_its_targets(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, PROJECT)
    assert Target.named(workspace, "orders").labels(workspace) == {
        *("team", "team=sales", "group=AVW", "connectiongroup=finance"),
    }
    assert Target.named(workspace, "stock").labels(workspace) == frozenset()
