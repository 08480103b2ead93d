"""When a target is dirty: `lifecycles-and-phases.md`, "Dirtiness"."""

from __future__ import annotations

import pytest

from lakewright.plan.dirtiness import (
    BuildPolicy,
    build_dirtiness,
    create_dirtiness,
    destroy_dirtiness,
    entity_dirtiness,
    read_build_policy,
    truncate_dirtiness,
)
from lakewright.plan.observation import Answer, Observation, TableChange
from lakewright.plan.reason import Code
from lakewright.spec.reason import Reason

YES, NO, UNKNOWN = Answer.YES, Answer.NO, Answer.UNKNOWN


def found(filled: Answer, **more: object) -> Observation:
    return Observation("t", exists=YES, filled=filled, **more)  # type: ignore[arg-type]  # a table of cases


@pytest.mark.parametrize(
    ("policy", "filled", "is_append", "is_partitioned", "verdict"),
    [
        *[(BuildPolicy.ALWAYS, filled, False, part, YES) for filled in Answer for part in (True, False)],
        *[(BuildPolicy.IF_TAINTED, filled, False, part, NO) for filled in Answer for part in (True, False)],
        *[
            (policy, filled, False, part, verdict)
            for policy in (BuildPolicy.COMPAT, BuildPolicy.IF_EMPTY)
            for filled, verdict in ((YES, NO), (NO, YES), (UNKNOWN, UNKNOWN))
            for part in (True, False)
        ],
        *[(BuildPolicy.SMART, filled, False, False, YES) for filled in Answer],
        (BuildPolicy.SMART, YES, False, True, NO),
        (BuildPolicy.SMART, NO, False, True, YES),
        (BuildPolicy.SMART, UNKNOWN, False, True, UNKNOWN),
        (BuildPolicy.SMART, YES, True, True, YES),
        (BuildPolicy.COMPAT, YES, True, True, YES),
        (BuildPolicy.IF_EMPTY, YES, True, True, NO),
    ],
)
def test_build_follows_the_policy(
    policy: BuildPolicy, filled: Answer, is_append: bool, is_partitioned: bool, verdict: Answer
) -> None:
    each_build = Reason(Code.ADDS_ROWS, {"mode": "APPEND"}) if is_append else None
    dirtiness = build_dirtiness(policy, found(filled), each_build=each_build, is_partitioned=is_partitioned)

    assert dirtiness.verdict is verdict
    assert dirtiness.reasons


@pytest.mark.parametrize("spelling", ["IF_EMPTY", "ifEmpty", "if_empty", "IfEmpty"])
def test_case_and_underscores_of_a_policy_do_not_matter(spelling: str) -> None:
    assert read_build_policy(spelling) is BuildPolicy.IF_EMPTY


def test_an_unknown_policy_names_those_there_are() -> None:
    with pytest.raises(ValueError, match="IF_TAINTED"):
        read_build_policy("sometimes")


@pytest.mark.parametrize(
    ("observation", "create", "truncate", "destroy"),
    [
        (Observation("t", exists=NO, filled=NO), YES, NO, NO),
        (Observation("t", exists=YES, filled=NO), NO, NO, YES),
        (Observation("t", exists=YES, filled=YES), NO, YES, YES),
        (Observation("t", exists=YES, filled=YES, changes=(TableChange("add column x"),)), YES, YES, YES),
        (Observation("t"), UNKNOWN, UNKNOWN, UNKNOWN),
        (Observation("t", exists=YES, error="no access"), UNKNOWN, UNKNOWN, UNKNOWN),
    ],
)
def test_other_phases_ask_what_is_there(
    observation: Observation, create: Answer, truncate: Answer, destroy: Answer
) -> None:
    assert create_dirtiness(observation).verdict is create
    assert truncate_dirtiness(observation).verdict is truncate
    assert destroy_dirtiness(observation).verdict is destroy


def test_an_entity_is_dirty_while_it_has_slices() -> None:
    many = entity_dirtiness(Observation("e", pending=("1", "2", "3", "4")))

    assert many.verdict is YES
    assert many.reasons == (Reason(Code.PENDING, {"slices": ("1", "2", "3", "4")}),)
    assert entity_dirtiness(Observation("e")).verdict is NO
