"""`ironbench headroom` on real trials: from the lab that `lab new headroom` writes to the answer and its exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from user import User

pytestmark = pytest.mark.live

SLOW_AND_FAST = """
question = "How far can the load grow?"
design = "full"
[workload]
name = "script"
files = ["queue.sql"]
[system]
engine = "postgres"
[load]
clients = 16
duration = "4s"
warmup = "0s"
[vary]
rate = [100, 160, 240, 400, 640]
[vary.system]
slow = { system.set."shop.pause" = "0.004" }
fast = { system.set."shop.pause" = "0.002" }
[measure]
metric = "response_time_p99_s"
repeats = 3
rates = "none"
"""
QUEUE = """BEGIN;
SELECT pg_advisory_xact_lock(1);
SELECT pg_sleep(current_setting('shop.pause')::float);
COMMIT;
"""


def test_a_limit_that_every_rate_keeps_is_inconclusive_and_says_where_to_measure(user: User) -> None:
    assert user("lab", "new", "headroom", "--engine", "sqlite", "--today", "100").code == 0
    file = user.home / "headroom.toml"
    text = file.read_text()
    rates = text[text.index("rate = [") : text.index("]", text.index("rate = [")) + 1]
    text = text.replace(rates, "rate = [100, 200]").replace('duration = "30s"', 'duration = "1s"')
    file.write_text(text.replace("repeats = 6", 'repeats = 3\nquiet = "0s"'))
    assert user("lab", "run", "headroom.toml", "--results", "found").code in (0, 3)
    wide = user("headroom", "found", "--limit", "mean < 10s", "--today", "100")
    assert wide.code == 3, wide
    assert "measure higher rates" in wide.stdout and "above 200/s" in wide.stdout
    tight = user("headroom", "found", "--limit", "mean < 1us", "--json")
    assert tight.code == 3, tight
    [system] = json.loads(tight.stdout)["systems"]
    assert (system["blocks_below_lowest_rate"], system["highest_rate"]) == (3, None)


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (("--limit", "p99 > 20ms"), "is not an upper bound"),
        (("--limit", "p99 < 20"), "has no unit"),
        (("--today", "0"), "out of range"),
        (("--results", "empty"), "contains no records"),
    ],
)
def test_wrong_input_is_refused_with_its_cause(user: User, words: tuple[str, ...], cause: str) -> None:
    (user.home / "empty").mkdir(exist_ok=True)
    told = user("headroom", *words)
    assert told.code == 2 and cause in told.stderr, told


@pytest.mark.long
def test_the_highest_rates_of_two_servers_with_a_queue_differ_as_their_service_times_do(user: User) -> None:
    (user.home / "queue.sql").write_text(QUEUE)
    (user.home / "two.toml").write_text(SLOW_AND_FAST)
    with user.begun("lab", "run", "two.toml", "--results", "found") as lab:
        assert lab.end(within_s=600)[0].code in (0, 3)
    words = ("headroom", "found", "--limit", "p99 < 200ms", "--today", "100")  # more than a busy machine adds
    assert user(*words, "-o", "headroom.html").code in (0, 3)
    told = user(*words, "--json")
    assert told.code in (0, 3), told
    found = json.loads(told.stdout)
    slow, fast = (one["highest_rate"]["value"] for one in found["systems"])
    # One transaction at a time: at most 250 and 500 per second, less what the server needs besides the pause, plus the
    # error of interpolation up to the next rate.
    assert 100 < slow < 400 and slow < fast < 640, found
    assert Path(user.home / "headroom.html").stat().st_size > 10_000
