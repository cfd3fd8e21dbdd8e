"""Halves of the cores: as many in each, threads of one core together."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ironbench.machine.cores import cores, halves
from ironbench.machine.tree import Tree


def tree(root: Path, places: dict[int, tuple[int, int]]) -> Tree:
    """CPU → its socket and core."""
    for cpu, (package, core) in places.items():
        topology = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
        topology.mkdir(parents=True, exist_ok=True)
        (topology / "physical_package_id").write_text(f"{package}\n")
        (topology / "core_id").write_text(f"{core}\n")
    return Tree(root)


def test_threads_of_one_core_stay_together_and_each_half_is_a_socket_where_there_are_two(tmp_path: Path) -> None:
    # As Linux numbers them: first threads of all cores first, sockets in turn.
    places = {cpu: (cpu % 2, cpu // 2 % 2) for cpu in range(8)}
    found = halves(tree(tmp_path, places), range(8))
    assert found == ((0, 4, 2, 6), (1, 5, 3, 7))


def test_one_core_has_no_halves_however_many_threads_it_has(tmp_path: Path) -> None:
    both = tree(tmp_path, {0: (0, 0), 1: (0, 0)})
    assert halves(both, [0, 1]) is None
    assert cores(both, [0, 1]) == [[0, 1]]


def test_cpus_whose_place_is_not_to_be_seen_are_cores_of_their_own(tmp_path: Path) -> None:
    assert halves(Tree(tmp_path), [3, 1, 2]) == ((1,), (2,))


@given(st.dictionaries(st.integers(0, 63), st.tuples(st.integers(0, 3), st.integers(0, 7)), min_size=1))
def test_halves_have_as_many_cores_and_share_none(places: dict[int, tuple[int, int]]) -> None:
    with tempfile.TemporaryDirectory() as root:
        found = halves(tree(Path(root), places), places)
    if found is None:
        assert len(set(places.values())) == 1
        return
    first, second = ({places[cpu] for cpu in of} for of in found)
    assert len(first) == len(second) == len(set(places.values())) // 2
    assert not first & second
