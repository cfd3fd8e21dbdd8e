"""The small words of the command line mean what they say, and nonsense names its option and a way out."""

import pytest

from ironbench.errors import InputError
from ironbench.plan import values


@pytest.mark.parametrize(
    ("text", "expected"),
    [("30s", 30), ("10ms", 0.01), ("2m", 120), ("1h", 3600), ("5", 5), ("0.5s", 0.5), ("250us", 0.00025)],
)
def test_a_duration_is_read_in_seconds(text: str, expected: float) -> None:
    assert values.seconds("--duration", text) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("512MB", 512 << 20), ("2GB", 2 << 30), ("1.5gb", 3 << 29), ("4096", 4096), ("1GiB", 1 << 30), ("64K", 64 << 10)],
)
def test_a_size_counts_in_powers_of_1024_as_postgresql_does(text: str, expected: int) -> None:
    assert values.size("--memory", text) == expected


def test_counts_keep_their_order() -> None:
    assert values.counts("--clients", "8,1,4", 1, 100) == (8, 1, 4)


def test_a_cpu_set_is_read_as_taskset_writes_it() -> None:
    assert values.cpus("--server-cpus", "0-2,5", range(8)) == (0, 1, 2, 5)


@pytest.mark.parametrize(
    ("read", "cause"),
    [
        (lambda: values.seconds("--duration", "soon"), "not a duration"),
        (lambda: values.seconds("--duration", "-3s"), "not a duration"),
        (lambda: values.size("--memory", "lots"), "not a size"),
        (lambda: values.counts("--clients", "1,two", 1, 10), "not a whole number"),
        (lambda: values.counts("--clients", "0", 1, 10), "out of range"),
        (lambda: values.counts("--clients", "100000", 1, 10000), "out of range"),
        (lambda: values.counts("--clients", "2,2", 1, 10), "twice"),
        (lambda: values.cpus("--server-cpus", "9", range(2)), "not available"),
        (lambda: values.cpus("--server-cpus", "a", range(2)), "not a CPU"),
        (lambda: values.pairs("--set", ["fsync"]), "not KEY=VALUE"),
    ],
)
def test_nonsense_is_refused_with_subject_cause_and_way_out(read, cause) -> None:
    with pytest.raises(InputError) as caught:
        read()
    assert caught.value.subject.startswith("--")
    assert cause in caught.value.cause
    assert caught.value.hint
