"""The tool that runs PostgreSQL's tests of pgbench: its input, its verdicts, and its message without the files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pgbench_cases import cases, compare, options
from pgbench_cases.compare import Outcome
from pgbench_cases.differences import DIFFERENCES, REASONS, TITLES

pytestmark = pytest.mark.live

ROOT = Path(__file__).parents[2]
FILES = Path(os.environ.get("PGBENCH_TESTS") or "not-there")

FILE = r"""
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->start;
$node->safe_psql('postgres', 'CREATE TABLE t (x int)');
$node->append_conf('postgresql.conf', "log_min_duration_statement = 0");
local $ENV{PGOPTIONS} = '-c a=b';
$node->pgbench('-t 1 -c2', 2, [qr{processed: 0/1}i], [ qr/two.*lines/s, qr{^$} ], 'first',
	{ 'b@3' => "SELECT 2;\n", 'a' => q{\set x 1} });
command_checks_all([ 'pgbench', '-f', 'no-such-file' ], 1, [], [qr{x}], 'second');
like('never', qr{matches}, 'is no case');
done_testing();
"""


def test_a_file_is_read_as_its_cases_in_order(tmp_path: Path) -> None:
    (tmp_path / "x.pl").write_text(FILE)
    table, settings, first, second = cases.read(tmp_path / "x.pl")
    assert table == cases.Preparation(sql="CREATE TABLE t (x int)")
    assert settings == cases.Preparation(settings="log_min_duration_statement = 0")
    assert isinstance(first, cases.Case) and isinstance(second, cases.Case)
    assert [Path(word).name for word in first.arguments] == ["-t", "1", "-c2", "-f", "a", "-f", "b@3"]
    assert {Path(path).name: text for path, text in first.scripts.items()} == {"a": "\\set x 1", "b": "SELECT 2;\n"}
    assert (first.status, first.pgoptions) == (2, "-c a=b")
    assert (first.stdout, first.stderr) == (["(?i:processed: 0/1)"], ["(?s:two.*lines)", "(?:^$)"])
    assert (second.name, second.arguments, second.scripts) == ("second", ["-f", "no-such-file"], {})


def case(*arguments: str, name: str = "some case", stderr: tuple[str, ...] = ()) -> cases.Case:
    return cases.Case(name, list(arguments), 0, [], list(stderr), {}, "")


def test_options_are_those_of_ironbench_or_a_difference() -> None:
    found = options.translated(case("-t5", "-c", "2", "--random-seed=7", "-M", "prepared", "-n", "-f", "a@2", "other"))
    assert found.words[:3] == ["run", "script", "a@2"]
    assert found.words[3:9] == ["--transactions", "5", "--clients", "2", "--seed", "7"]
    assert found.database == "other"
    outcome = options.translated(case("-P", "2", "-r", "-R", "50", "-f", "a")).words
    assert outcome[3:8] == ["--progress", "2", "--report-per-statement", "--rate", "50"]
    assert "--protocol" not in options.translated(case("-f", "a")).words, "the default protocol is pgbench's"
    assert options.translated(case("-b", "se")).words[1] == "select-only"
    assert options.translated(case("--bad-option")).words == ["run", "script", "--bad-option"]
    assert options.translated(case("-i")).difference == "tables"
    assert options.translated(case("-S", "-f", "a")).difference == "builtins"


@pytest.mark.parametrize(
    ("theirs", "ours", "said"),
    [
        (Outcome("done", "", processed=5), Outcome("done", "", processed=5), ""),
        (Outcome("done", "", processed=5), Outcome("done", "", processed=4), "transactions: 5 and 4"),
        (Outcome("done", "", retried=1), Outcome("done", "", retried=0), "retried: 1 and 0"),
        (Outcome("done", ""), Outcome("failed", ""), "pgbench: done, ironbench: failed"),
        (Outcome("done", "", ["debug: 1"]), Outcome("done", "", ["debug: 2"]), "debug lines: 1 and 1"),
        (Outcome("failed", "why"), Outcome("failed", "another cause"), "reason why is not in"),
        (Outcome("failed", "why"), Outcome("failed", "that is why"), ""),
        (Outcome("failed", "why"), Outcome("refused", "that is why"), "pgbench: failed, ironbench: refused"),
    ],
)
def test_whatever_the_programs_do_unlike_is_a_disagreement(theirs: Outcome, ours: Outcome, said: str) -> None:
    found = compare.disagreements(case(stderr=("why",)), theirs, ours)
    assert bool(found) == bool(said)
    assert said in "".join(found)


def test_every_difference_is_documented() -> None:
    page = (ROOT / "docs" / "workloads" / "scripts.md").read_text()
    _, _, listed = page.partition("## Differences from pgbench")
    for title in TITLES.values():
        assert f"- **{title}" in listed, title
    assert {key for key, _ in DIFFERENCES.values()} <= set(TITLES)
    refused = {name for name, (_, ending) in DIFFERENCES.items() if ending != "done"}
    assert refused <= set(REASONS), "a refusal must name the right cause"


def test_without_the_files_it_says_how_to_get_them(tmp_path: Path) -> None:
    path = f"{ROOT / 'tests'}:{ROOT / 'tests' / 'live'}"
    for place in ("", str(tmp_path)):
        environment = {**os.environ, "PYTHONPATH": path, "PGBENCH_TESTS": place}
        command = [sys.executable, "-m", "pgbench_cases"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30)
        assert done.returncode == 2
        assert "apt-get source --download-only postgresql-15" in done.stderr
        assert "make pgbench-cases PGBENCH_TESTS=" in done.stderr


@pytest.mark.long
@pytest.mark.skipif(
    bool(cases.missing(FILES)), reason="PGBENCH_TESTS names no directory with PostgreSQL's tests of pgbench"
)
def test_all_but_the_documented_differences_agree() -> None:
    command = ["make", "--silent", "pgbench-cases", f"PGBENCH_TESTS={FILES}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stdout + done.stderr
