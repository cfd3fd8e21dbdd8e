"""Records of earlier schemas get today's fields: causes as notes, method of measurement, requested options."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from factories import record

from ironbench.model.note import Note, text_note
from ironbench.model.record import DUET, NOT_BACK, NOT_WHOLE, SLICES, TRIALS, Record
from ironbench.model.search import Limit
from ironbench.records.decoded import decoded
from ironbench.report import wording

OF_TODAY = ("causes", "method", "turns_since", "seed_given", "search_range", "limits", "search_result", "crash")


def earlier(conditions: dict[str, str], cause: str = "", purpose: str = "lab", schema: int = 4) -> Record:
    """Returns a record as that schema wrote it."""
    document: dict[str, Any] = json.loads(msgspec.json.encode(record(purpose=purpose)))
    for name in (*OF_TODAY, "power_cut", "answers"):
        del document[name]
    document |= {"schema": schema, "conditions": conditions, "cause": cause}
    return decoded(json.dumps(document).encode())


@pytest.mark.parametrize(
    ("cause", "code"),
    [
        ("its block is not whole: log=memory: no room", NOT_WHOLE),
        ("the engine died: power cut (lose): 3 writes; afterwards the database does not start: x", NOT_BACK),
        ("check failed: every commit is there", "text"),
    ],
)
@pytest.mark.parametrize("schema", [1, 2, 3, 4])
def test_the_cause_of_an_earlier_record_is_shown_as_it_is_and_has_its_code(cause: str, code: str, schema: int) -> None:
    found = earlier({}, cause, schema=schema)
    assert [one.code for one in found.causes] == [code]
    assert wording.cause(found) == cause


@pytest.mark.parametrize(
    ("conditions", "method"),
    [
        ({}, TRIALS),
        ({"side by side since": "2026-11-25T01:00:00.123"}, SLICES),
        ({"side by side since": "2026-11-25T01:00:00.123", "at once": "one half of the cores each"}, DUET),
    ],
)
def test_the_method_of_an_earlier_record_is_known_from_its_conditions(conditions: dict[str, str], method: str) -> None:
    found = earlier(conditions)
    assert (found.method, found.turns_since) == (method, conditions.get("side by side since", ""))


def test_what_was_asked_for_is_known_from_the_conditions_of_an_earlier_record() -> None:
    words = {
        "seed": "chosen by --seed",
        "crash": "torn",
        "power": "cut after the measured time: 3 writes had not been flushed",
        "range searched": "1 to 128 clients",
        "limits": "response_time_p99_s at most 0.02, device_queue_depth at most 1",
        "search": "best clients: 8 with 940/s, by 12 trials",
        "data": "as loaded",
    }
    found = earlier(words, purpose="confirmation")
    assert (found.seed_given, found.crash, found.power_cut) == (True, "torn", True)
    assert found.search_range == (1, 128)
    assert found.limits == (Limit("response_time_p99_s", 0.02), Limit("device_queue_depth", 1.0))
    assert found.search_result == text_note(words["search"])
    assert found.conditions == {"power": words["power"], "data": "as loaded"}
    assert wording.conditions(found) == words


def test_conditions_in_words_of_another_version_stay_conditions() -> None:
    words = {"range searched": "from here to there", "limits": "none that was known"}
    found = earlier(words)
    assert (found.search_range, found.limits, found.conditions) == (None, (), words)


def test_why_a_search_tried_a_load_is_no_result_of_it() -> None:
    assert earlier({"search": "ladder, upwards"}, purpose="search").search_result is None


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("22 of 22 right", "answers-checked", "answers checked: 22 of 22 right"),
        ("not checked: drawn parameters", "answers-unchecked", "answers not checked: drawn parameters"),
    ],
)
def test_how_answers_were_checked_is_known_of_an_earlier_record(text: str, code: str, words: str) -> None:
    found = earlier({"answers": text}).answers
    assert found == Note(code, {"text": words})
    assert wording.text(found) == words


def test_a_record_of_today_is_decoded_as_it_was_written() -> None:
    one = record(method=SLICES, turns_since="2026-11-25T01:00:00.123", limits=(Limit("x", 1.0),), seed_given=True)
    assert decoded(msgspec.json.encode(one)) == one
