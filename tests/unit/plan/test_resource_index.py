"""What touches a resource is found as if each were asked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lakewright.plan.resource import Resource
from lakewright.plan.resource_index import ResourceIndex

LEVELS = st.sampled_from(["a", "b", "*", "a*"])
PARTITIONS = st.dictionaries(st.sampled_from(["p", "q", "r"]), st.sampled_from(["1", "2"]))
PATHS = st.lists(LEVELS, min_size=1, max_size=4).map("/".join)

RESOURCES = st.one_of(
    st.builds(lambda path, partition: Resource.file(f"/{path}", partition), PATHS, PARTITIONS),
    st.builds(lambda path: Resource.file(f"s3://lake/{path}"), PATHS),
    st.builds(Resource.table, st.sampled_from(["a", "A", "b"]), PARTITIONS),
    st.builds(Resource.jdbc, st.sampled_from(["a", "A", "b"]), PARTITIONS),
)


@given(st.lists(RESOURCES, max_size=12), RESOURCES)
def test_all_that_touch_are_found_and_nothing_else(kept: list[Resource], asked: Resource) -> None:
    index: ResourceIndex[int] = ResourceIndex()
    for number, resource in enumerate(kept):
        index.add(resource, number)

    found = sorted(index.touching(asked))

    assert found == [number for number, resource in enumerate(kept) if resource.intersects(asked)]
