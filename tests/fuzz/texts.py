"""Readers of user texts, and the texts to mutate. A reader returns, or raises an error of ironbench."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from fuzz.mutate import NUMBERS, TEXTS, WORDS, mutated
from fuzz.splice import spliced

from ironbench.errors import IronbenchError
from ironbench.model.secrets import Secrets

ROOT = Path(__file__).parents[2]
_SMALL = """question = "Is more better?"
design = "one-at-a-time"
[system]
engine = "{engine}"
label = "a system"
memory = "64MiB"
[limits]
server_cpus = "0"
[workload]
name = "{workload}"
[load]
clients = 4
duration = "2s"
warmup = "1s"
think_time = "0s"
[vary]
"load.clients" = [1, 2, 4]
[vary.memory]
small = {{ memory = "32MB" }}
large = {{ memory = "1GiB", load.think_time = "1ms" }}
[measure]
repeats = 6
seed = 7
margin = 0.05
quiet = "10s"
stages = [6, 4]
[expect]
claims = ["memory=large over memory=small: 1.0 to 1.5", "order: memory=large > memory=small"]
"""
_SCRIPTS = """\\set aid random(1, 100000 * :scale)
\\set d random_gaussian(-5000, 5000, 2.5) + abs(-3) % 7
BEGIN;
\\if :aid > 5 and :d is not null
UPDATE t SET a = a + :d WHERE aid = :aid;
\\elif mod(:aid, 2) = 0
SELECT a AS v FROM t WHERE aid = :aid \\gset p_
\\else
\\sleep :aid us
\\endif
END;
"""
SECRET = "S3cr3tW0rd"


_WORDS = tuple(word.encode() for word in (*NUMBERS, *TEXTS, *WORDS, "&", "?a=", "%41", "%", "\\set ", ":a", "\n\\if "))


@dataclass(frozen=True)
class Target:
    """Reads mutated texts. The number of an input determines its content, on every machine."""

    name: str
    corpus: tuple[str, ...]
    reader: Callable[[str], object]
    passes: int = 1
    """How many times each input is read."""
    floor_s: float = 0.05
    """CPU seconds that a small input may take."""

    def allowed_s(self, data: str | bytes) -> float:
        """Returns the CPU seconds that an input may take: one per megabyte."""
        return max(self.floor_s, self.passes * len(data) / 1e6)

    def input(self, number: int) -> str:
        dice = random.Random(f"{self.name}/{number}")
        if dice.random() < 0.75:
            return mutated(self.corpus, dice)
        return spliced([text.encode() for text in self.corpus], _WORDS, dice).decode(errors="replace")

    def read(self, data: str | bytes) -> None:
        assert isinstance(data, str)
        self.reader(data)


def _texts(pattern: str) -> tuple[str, ...]:
    return tuple(path.read_text() for path in sorted(ROOT.glob(pattern)))


def _lab(text: str) -> None:
    """Reads, plans and shows a lab, as `ironbench lab plan` does."""
    import msgspec

    from ironbench.lab import declare
    from ironbench.lab.dry_run import lab as planning
    from ironbench.plan import labfile

    found = declare.planned(labfile.read(text, "fuzz.toml"))
    msgspec.json.encode(planning.document(found))
    "".join(planning._pages(found))


def _script(text: str) -> None:
    from ironbench import _core

    for protocol in ("prepared", "simple"):
        _core.compile_scripts([("fuzz.sql", text, 1)], [("scale", "1")], protocol)


def _device(text: str) -> None:
    from ironbench import _core
    from ironbench.devices import expression, models

    normal = expression.normalized("--data", text)
    assert expression.normalized("--data", normal) == normal
    _core.device_capacity(normal, models.for_core(models.models()))
    expression.depth(normal, 10**9)


def _prices(text: str) -> None:
    from ironbench.catalogue import prices
    from ironbench.plan import offers
    from ironbench.study.cost import StoredTrials, costs

    sheet = prices.read(text, "fuzz.toml")
    costs(
        offers.read(_offers(), "offers.toml"),
        prices.Sheet({**prices.shipped().prices, **sheet.prices}, sheet.rates),
        StoredTrials(),
    )


@cache
def _offers() -> str:
    return next(text for text in _texts("docs/examples/*.toml") if "[system" in text)


def _systems(text: str) -> None:
    from ironbench.catalogue import prices
    from ironbench.plan import offers
    from ironbench.study.cost import StoredTrials, costs

    costs(offers.read(text, "fuzz.toml"), prices.shipped(), StoredTrials())


def _models(text: str) -> None:
    from ironbench import _core
    from ironbench.catalogue.devices import device_models, read
    from ironbench.devices import models

    found = read(text, "fuzz.toml", device_models())
    for name in found:
        _core.device_capacity(name, models.for_core(found))


_AS_PASSWORD = re.compile(rf"(?::|(?:password|passwd|pwd)\s*=\s*[{{']?){SECRET}(?:['@;}}\s]|$)", re.IGNORECASE)
"""Pattern of a password in a position for passwords. Elsewhere, a password cannot be distinguished from other words."""


def _dsn(text: str) -> None:
    """Reads a DSN with every engine, and checks that the address shown in results is read as the same address."""
    from ironbench.engines.mariadb import dsn as mariadb
    from ironbench.engines.odbc import dsn as odbc
    from ironbench.engines.postgres import dsn as postgres
    from ironbench.engines.slapd import dsn as slapd

    environ = {"HOME": "/nonexistent", "PGUSER": "u", "PGHOST": "h"}
    read: tuple[Callable[[str], tuple[Any, Secrets]], ...] = (
        *(partial(one.parse, environ=environ) for one in (postgres, mariadb, slapd)),
        odbc.parse,
    )
    refused: list[IronbenchError] = []
    for parse in read:
        try:
            address, _ = parse(text)
        except IronbenchError as error:
            quoted = SECRET in f"{error} {error.hint}" and _AS_PASSWORD.search(text)
            assert not quoted, f"a password is quoted: {error} {error.hint}"
            refused.append(error)
            continue
        assert parse(address.text())[0] == address
    if len(refused) == len(read):
        raise refused[0]


def _target(text: str) -> None:
    from ironbench.study import target

    target.parse(text)


_DEVICES = (
    "raid0(4, ssd-sata-2011, stripe=64K)",
    "spread(2 x hdd-10k, ssd-sata-2011, extent=1M)",
    "hdd-7200(capacity=20GB, stroke=10%)",
    "behind(raid-card(cache=off), raid10(8, hdd-7200))",
    "ssd-sata-2008(cache=on, fill=80%)",
    "raid5(5, hdd-10k)",
    "free",
    "ram",
)
_OWN_MODEL = '[ours]\nlike = "hdd-7200"\ndoc = "x"\n[ours.figures]\nrpm = "10000 rpm"\ncache = "64 MB"\n'
_ADDRESSES = (
    f"postgresql://u:{SECRET}@h:5432/db?sslmode=require&application_name=a",
    f"postgres://u:{SECRET}@[::1]:5432/db",
    f"host=h port=5432 user=u password={SECRET} dbname=db",
    f"host=h password='{SECRET}' sslmode=prefer",
    f"host=h password={SECRET} service=a servicefile=/nonexistent sslrootcert=/etc/hosts passfile=/nonexistent",
    f"postgresql://u:{SECRET}@h1:5432,h2:5433/db?target_session_attrs=primary&channel_binding=require",
    f"host=/tmp,@abstract port=1,2 user='a b' password={SECRET} options='-c search_path=x' require_auth=!md5",
    f"mysql://u:{SECRET}@h:3306/db?tls=verify-full",
    f"mariadb://u:{SECRET}@localhost/db?socket=/run/mysqld/mysqld.sock",
    f"ldap://cn=admin,dc=example,dc=com:{SECRET}@h:389/dc=example,dc=com?tls=require&mechanism=simple",
    f"ldapi://cn=a,dc=b:{SECRET}@%2Frun%2Fldapi/dc=b",
    f"odbc:Driver={{PostgreSQL}};Server=h;Database=d;Uid=u;Pwd={SECRET};pqopt={{password={SECRET}}}",
    "odbc:shop",
)
_ENGINES = (("null", "select-only"), ("sqlite", "tpcb-like"), ("sqlite", "igen-oltp"), ("none", "igen-cpu"))


@cache
def targets() -> dict[str, Target]:
    """Returns the targets by name. Only a few labs use real engines, because planning such a lab starts processes of
    its engines."""
    labs = tuple(_SMALL.format(engine=engine, workload=workload) for engine, workload in _ENGINES)
    scripts = (*_texts("src/ironbench/workloads/*/*-*.sql"), *_texts("src/ironbench/workloads/igen_oltp/*.sql"))
    examples = _texts("docs/examples/*.toml")
    shipped = (ROOT / "src/ironbench/catalogue/devices.toml").read_text()
    found = (
        Target("lab", (*labs * 25, *_texts("labs/*.toml")), _lab, floor_s=1.0),
        Target("script", (_SCRIPTS, *scripts), _script),
        Target("device", _DEVICES, _device),
        Target("prices", tuple(one for one in examples if "[price" in one), _prices),
        Target("systems", tuple(one for one in examples if "[system" in one), _systems),
        Target("models", (_OWN_MODEL, _OWN_MODEL, shipped[:20_000]), _models),
        Target("dsn", _ADDRESSES, _dsn, passes=5),
        Target("target", ("p99 < 10ms at 5000 tps", "mean <= 1.5s at 20/s"), _target),
    )
    return {target.name: target for target in found}
