"""Scripts have the same meaning as in pgbench, which is run here as the oracle."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pgbench_oracle import SEED, Pgbench
from raw_server import RawServer
from trial import postgres, run

from ironbench._core import compile_scripts, rehearse_script
from ironbench.errors import FailureError, InputError, IronbenchError

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("pgbench")]

VARIABLES = [("i", "42"), ("d", "2.5"), ("b", "yes"), ("n", "NULL"), ("text", "abc")]


@pytest.fixture(scope="module")
def pgbench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pgbench]:
    settings = ("logging_collector=on", "log_destination=jsonlog", "log_statement=all", "max_connections=200")
    with RawServer(*settings) as server:
        yield Pgbench(server, tmp_path_factory.mktemp("pgbench"))


def debug_script(expressions: Sequence[str]) -> str:
    return "".join(f"\\set x debug({expression})\n" for expression in expressions)


def ours(text: str, variables: Sequence[tuple[str, str]] = (), seed: int = SEED) -> list[str]:
    return rehearse_script("script.sql", text, variables, seed)


def assert_agrees(pgbench: Pgbench, text: str, variables: Sequence[tuple[str, str]] = ()) -> None:
    theirs = pgbench.run(text, variables)
    assert not theirs.failed, theirs.errors
    mine = ours(text, variables)
    wrong = [
        (line, own, their)
        for line, own, their in zip(text.splitlines(), mine, theirs.debug, strict=True)
        if own != their
    ]
    assert not wrong, wrong[:5]


INTEGERS = ["0", "1", "2", "3", "7", "-1", "63", "64", "65", "1000003", "-9223372036854775808", "9223372036854775807"]
DOUBLES = ["0.0", "1.5", "-2.5", "0.5", "1e15", "1e-5", "123456789.123456789", "1e300", ".5e1", "2."]
OTHERS = ["true", "false", "null", ":i", ":d", ":b", ":n", ":client_id", ":scale"]
BINARY = ["+", "-", "*", "/", "%", "=", "<>", "!=", "<", "<=", ">", ">=", "&", "|", "#", "<<", ">>", "and", "or"]
UNARY = ["-", "+", "~", "not "]
FUNCTIONS = {
    "abs": 1, "double": 1, "exp": 1, "int": 1, "ln": 1, "sqrt": 1, "mod": 2, "pow": 2, "power": 2, "least": 3,
    "greatest": 4, "hash": 2, "hash_fnv1a": 2, "hash_murmur2": 2, "permute": 3, "pi": 0, "random": 2,
}  # fmt: skip
TESTS = [" is null", " is not null", " isnull", " notnull", " is true", " is not true", " is false", " is not false"]


def expression(rng: random.Random, depth: int) -> str:
    """Returns a random expression; about half of them fail. Few parentheses, so that precedence is tested."""

    def inner() -> str:
        return expression(rng, depth - 1)

    kind = rng.random() if depth else 0.0
    if kind < 0.25:
        return rng.choice(rng.choice([INTEGERS, INTEGERS, DOUBLES, OTHERS]))
    if kind < 0.6:
        return f"{inner()} {rng.choice(BINARY)} {inner()}"
    if kind < 0.68:
        return f"({inner()})"
    if kind < 0.76:
        return f"{rng.choice(UNARY)}{inner()}"
    if kind < 0.82:
        return f"{inner()}{rng.choice(TESTS)}"
    if kind < 0.88:
        return f"case when {inner()} then {inner()} when {inner()} then {inner()} else {inner()} end"
    name = rng.choice(sorted(FUNCTIONS))
    return f"{name}({', '.join(inner() for _ in range(FUNCTIONS[name]))})"


def test_values_of_random_expressions_agree(pgbench: Pgbench) -> None:
    rng = random.Random(SEED)
    working: list[str] = []
    while len(working) < 4000:
        candidate = expression(rng, 3)
        try:
            ours(debug_script([candidate]), VARIABLES)
        except IronbenchError:
            continue
        if "random" not in candidate:
            working.append(candidate)
    assert_agrees(pgbench, debug_script(working), VARIABLES)


def test_expressions_that_fail_here_fail_there_for_the_same_reason(pgbench: Pgbench) -> None:
    rng = random.Random(SEED + 1)
    refused: list[str] = []
    failing: list[tuple[str, str]] = []
    while len(refused) < 60 or len(failing) < 120:
        text = debug_script([expression(rng, 3)])
        try:
            ours(text, VARIABLES)
        except InputError:
            refused.append(text)
        except FailureError as error:
            # pgbench treats the bits of a boolean as a double in abs().
            if "abs(" not in text:
                failing.append((text, error.cause))
    for text in refused[:60]:  # pgbench ends at the first script that it cannot parse, before it connects
        assert pgbench.run(text, VARIABLES).failed, text
    drawn = [one for one in failing[:120] if "random" in one[0]]
    others = [one for one in failing[:120] if "random" not in one[0]]
    assert drawn and others
    for text, cause in drawn:
        outcome = pgbench.run(text, VARIABLES)
        assert outcome.failed, text
        assert cause in outcome.errors[0], text
    causes = pgbench.each([text for text, _ in others], VARIABLES)
    assert not [(text, own, their) for (text, own), their in zip(others, causes, strict=True) if own not in their]


WRONG_VALUES = [
    "1 / 0", "1 % 0", "mod(1, 0)", "9223372036854775807 + 1", "-9223372036854775808 - 1", "4611686018427387904 * 2",
    "-9223372036854775808 / -1", "int(1e19)", "int(0.0 / 0.0)", "random(2, 1)", "random(-1, 9223372036854775807)",
    "random_gaussian(1, 10, 1.9)", "random_exponential(1, 10, 0.0)", "random_exponential(1, 10, -1.5)",
    "random_zipfian(1, 10, 1.0)", "random_zipfian(1, 10, 1000.1)", "permute(1, 0)", "permute(1, -5, 3)",
    "true + 1", "not 1", "1 and true", "false or 1 and 2", "null is null and 1",
    "least(true, 1)", "sqrt(true)", ":text", ":text + 1",
    "random(true, 2)", "hash(false)",
]  # fmt: skip


def test_errors_of_evaluation_have_pgbenchs_words(pgbench: Pgbench) -> None:
    causes = pgbench.each([debug_script([wrong]) for wrong in WRONG_VALUES], VARIABLES)
    for wrong, theirs in zip(WRONG_VALUES, causes, strict=True):
        with pytest.raises(FailureError) as caught:
            ours(debug_script([wrong]), VARIABLES)
        assert caught.value.cause in theirs, wrong


REFUSED = [
    "\\set x", "\\set", "\\set x 1 +", "\\set x (1", "\\set x 1)", "\\set x foo", "\\set x foo(1)", "\\set x abs()",
    "\\set x abs(1, 2)", "\\set x pi(1)", "\\set x random(1)", "\\set x random_zipfian(1, 2)", "\\set x least()",
    "\\set x 1 < 2 < 3", "\\set x 1 = 2 = 3", "\\set x 9223372036854775808", "\\set x 1e400", "\\set x 1 is 2",
    "\\set x case end", "\\set x case when 1 then 2", "\\set x 1;", "\\set x 'a'", "\\set x 1 ! 2", "\\set x @",
    "\\set x :never + 1", "\\set x hash(1, 2, 3)", "\\set x permute(1)", "\\set x is null", "\\set x null null",
    "\\if 1\nSELECT 1;", "\\else", "\\endif", "\\elif 1", "\\if 1\n\\else\n\\else\n\\endif",
    "\\if 1\n\\else\n\\elif 1\n\\endif", "\\if\n\\endif", "\\if 1\n\\endif 2", "\\gset", "\\set x 1\n\\gset",
    "SELECT 1 AS a \\gset\n\\gset", "SELECT 1 AS a \\gset a b", "\\sleep", "\\sleep abc", "\\sleep 1 min",
    "\\sleep 1ms s", "\\sleep 1 ms s", "\\nothing", "\\syncpipeline", "\\endpipeline", "\\set 1x 5", "\\set x$ 5",
    "", "-- nothing\n", "\\set x greatest(1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17)",
]  # fmt: skip


@pytest.mark.parametrize("wrong", REFUSED)
def test_scripts_refused_here_fail_there(pgbench: Pgbench, wrong: str) -> None:
    """Each in a separate call: pgbench ends at the first script that it cannot parse, before it connects."""
    with pytest.raises(InputError):
        compile_scripts([("script.sql", wrong, 1)], [], "extended")
    assert pgbench.run(wrong, protocol="extended").failed


def test_syntax_of_meta_commands_agrees(pgbench: Pgbench) -> None:
    text = r"""
\SET a debug(1 + \
  2 * -3)
\ set b debug(:a * 2)
\set c_é1 debug(NULL IS NOT TRUE)
-- a comment between
\if :a < 0 /* not a comment */ 1
\endif
""".replace(" /* not a comment */ 1", "")
    text += r"""
\if 0
\set x debug(1)
\elif null
\set x debug(2)
\elif :b
  \if false
\set x debug(3)
  \elif 0.0
\set x debug(4)
  \else
\set x debug(5)
  \endif
\elif 1 / 0
\set x debug(6)
\else
\set x debug(7)
\endif
\set x debug(GreaTest(1, 2.0) + Pi() ISNULL)
\sleep 1us
\sleep 1 US
\sleep :us us
\set x debug(:random_seed)
\set x debug(:default_seed)
\set x debug(:client_id)
"""
    theirs = pgbench.run(text, [("us", "5")])
    assert not theirs.failed, theirs.errors
    assert ours(text, [("us", "5")]) == theirs.debug


VALUES = [
    "1", "-7", " 12", "+3", "007", "1.50", "1e3", ".5", "inf", "NaN", "t", "TRU", "Y", "on", "of", "off", "n", "f",
    "null", "NULL", "9223372036854775807",
]  # fmt: skip
NO_VALUES = ["", "o", "abc", "9223372036854775808", "1e400", "1 2", "+", "--1", "1x"]


def test_texts_of_variables_are_read_alike(pgbench: Pgbench) -> None:
    named = [(f"v{n}", value) for n, value in enumerate(VALUES)]
    assert_agrees(
        pgbench, debug_script([words for name, _ in named for words in (f":{name}", f":{name} is null")]), named
    )


def test_texts_that_are_no_values_fail_alike(pgbench: Pgbench) -> None:
    """pgbench gets them from the server, since its command line allows no empty value."""
    read = debug_script([":v + 1"])
    assert pgbench.each([f"SELECT '{value}' AS v \\gset\n{read}" for value in NO_VALUES])
    for value in NO_VALUES:
        with pytest.raises(FailureError):
            ours(read, [("v", value)])


def test_hashes_and_permutations_agree(pgbench: Pgbench) -> None:
    rng = random.Random(SEED)
    expressions: list[str] = []
    for _ in range(1000):
        value, seed = rng.randint(-(2**63) + 1, 2**63 - 1), rng.randint(-(2**63) + 1, 2**63 - 1)
        size = rng.choice([1, 2, 3, 10, 1000, 2**31, 2**62, 2**63 - 1, rng.randint(1, 10**9)])
        expressions += [f"hash({value})", f"hash_fnv1a({value}, {seed})", f"hash_murmur2({value}, {seed})"]
        expressions += [f"permute({value}, {size})", f"permute({value}, {size}, {seed})"]
    assert_agrees(pgbench, debug_script(expressions))


@pytest.mark.parametrize("seed", [0, 1, 42, 2**40 + 7])
def test_random_numbers_of_a_seed_are_the_same(pgbench: Pgbench, seed: int) -> None:
    rng = random.Random(seed)
    expressions: list[str] = []
    for _ in range(400):
        low = rng.randint(-(10**9), 10**9)
        bounds = f"{low}, {low + rng.choice([0, 1, 9, 1000, 10**6, 10**12])}"
        expressions += [
            f"random({bounds})",
            f"random_gaussian({bounds}, {rng.uniform(2, 10)})",
            f"random_exponential({bounds}, {rng.uniform(0.01, 20)})",
            f"random_zipfian({bounds}, {rng.uniform(1.001, 5)})",
            "random(1, 9) > random(1, 9)",
            "random(1, 9) - random(1, 9) * random(1, 9)",
        ]
    text = debug_script(expressions)
    assert ours(text, seed=seed) == pgbench.run(text, seed=seed).debug


SQL = r"""
-- dropped
  SELECT 1 AS a, ':i' AS b, $$ ; :i $$ AS c, $tag$ $$; $tag$ AS d; SELECT -- kept ; :i
    2 /* ; /* nested ; */ ; */ + :i AS "col;umn" ;
SELECT E'it\'s; :i', e'\\'
   '; \'' ; SELECT 'a\', U&'\0061;';
SELECT '12:30'::text, (ARRAY[1,2,3])[1:2], :i::int, :i :: int, a.b1$$c FROM (SELECT 5 AS b1$$c) a;
SELECT (SELECT 1); SELECT :undefined_or_not;
SELECT :i+:i,:d /*:i*/
\set y 5
SELECT :y + 1 AS p, null AS q \gset r_
SELECT :r_p AS w, ':r_q' AS v
  \gset
SELECT ':v' ; ;
CREATE OR REPLACE FUNCTION pg_temp.f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END;
CREATE TEMP TABLE begin_case(x int); SELECT 3
"""


def test_the_server_gets_the_same_commands_by_the_simple_protocol(pgbench: Pgbench) -> None:
    text = SQL.replace(":undefined_or_not", "'x:undefined'") + "\\; SELECT 4\\; SELECT ':i', '\\:i'\\;;"
    theirs = pgbench.sent(text, VARIABLES, "simple")
    gathered = [("r_p", "6"), ("r_q", ""), ("v", "")]
    assert ours(text, VARIABLES + gathered) == theirs


def test_the_server_gets_the_same_commands_by_the_extended_protocol(pgbench: Pgbench) -> None:
    text = "SELECT :i::int + :i::int, '12:30', (ARRAY[1,2,3])[1:2], :undefined::text;\nSELECT :d::float8 -- x\n;"
    theirs = pgbench.sent(text, VARIABLES, "extended")
    assert compile_scripts([("script.sql", text, 1)], VARIABLES, "extended") == [theirs]


def test_values_are_sent_as_pgbench_writes_them(pgbench: Pgbench) -> None:
    rng = random.Random(SEED)
    doubles = [repr(rng.uniform(-1, 1) * 10.0 ** rng.randint(-30, 30)) for _ in range(300)]
    values = [*doubles, *INTEGERS, *DOUBLES, "1e15", "1e14", "123456789012345678.0", "1/3.0", "null", "true", "false"]
    text = "".join(f"\\set v {value}\nSELECT ':v';\n" for value in values)
    assert ours(text) == pgbench.sent(text, [], "simple")


def test_gathered_columns_are_read_as_pgbench_reads_them(pgbench: Pgbench) -> None:
    read = debug_script([":pa", ":pb"])
    theirs = pgbench.run("SELECT 'yes' AS a, 2.5 AS b \\gset p\n" + read)
    values = [line.partition(": ")[2] for line in ours(read, [("pa", "yes"), ("pb", "2.5")])]
    assert values == [line.partition(": ")[2] for line in theirs.debug] == ["boolean true", "double 2.5"]


def test_a_variable_that_another_script_sets_is_the_client_s(pgbench: Pgbench, tmp_path: Path) -> None:
    """pgbench keeps variables per client, whatever script set them; reading one too early ends the client."""
    sets, reads = "\\set x 5\nSELECT 1;\n", "\\set y debug(:x + 1)\nSELECT :y;\n"
    files = {"sets": tmp_path / "sets.sql", "reads": tmp_path / "reads.sql"}
    files["sets"].write_text(sets)
    files["reads"].write_text(reads)
    outcomes = [pgbench.mixed(list(files.values()), seed) for seed in range(1, 9)]
    assert any(outcome.failed for outcome in outcomes)
    assert all(
        'undefined variable "x"' in line for outcome in outcomes for line in outcome.errors if "variable" in line
    )
    good = [outcome for outcome in outcomes if not outcome.failed]
    assert good
    assert {line.partition(": ")[2] for outcome in good for line in outcome.debug} == {"int 6"}
    scripts = [("sets", sets, 1), ("reads", reads, 1)]
    assert compile_scripts(scripts, [], "prepared") == [["SELECT 1;"], ["SELECT $1;"]]


def test_our_clients_keep_what_another_script_set(pgbench: Pgbench) -> None:
    pgbench.session.query("CREATE TABLE IF NOT EXISTS kept (y int)")
    scripts = ("\\set x 5\nSELECT 1;\n", "\\set y :x + 1\nINSERT INTO kept VALUES (:y);\n")
    summary = run(postgres(pgbench.server.connection()), *scripts, stop={"transactions": 200}).summary
    kept = int(pgbench.session.query("SELECT count(*) FROM kept WHERE y = 6")[0][0] or 0)
    assert kept > 200
    assert pgbench.session.query("SELECT count(*) FROM kept WHERE y <> 6") == [("0",)]
    assert set(summary["errors"]) <= {"script"}, "only before the first of the setting script"
