"""A results directory for pages: runs of two systems and a lab; and a logged-in browser."""

from __future__ import annotations

from pathlib import Path

from factories import ENGINE, MACHINE, evidence, example
from labfactory import lab, trials
from starlette.testclient import TestClient

from ironbench.model.lab import Lab
from ironbench.printer import Printer
from ironbench.records import Store
from ironbench.records.labs import FrozenPlan, LabDirectory
from ironbench.serve.app import application
from ironbench.serve.auth import AccessPolicy
from ironbench.serve.results import Results

TOKEN = "a-token-of-sixteen-or-more"
POLICY = AccessPolicy("127.0.0.1", 7373, TOKEN)
US = "http://127.0.0.1:7373"
LAB = "log-20261121T010000-log"


def stocked(results: Path) -> Path:
    """Fills a results directory with runs and a lab of ten blocks."""
    store = Store(results, Printer.silent())
    store.keep_shared("machines", MACHINE)
    store.keep_shared("engines", ENGINE)
    for record in example():
        store.keep(record, **evidence())
    begun(results)
    return results


def begun(results: Path, plan: Lab | None = None, share: float = 1.0, *, gate: bool = False) -> LabDirectory:
    """Creates a lab of which the first trials are measured: a `share` of all trials."""
    plan = plan or lab({"log": ("disk", "memory")})
    directory = LabDirectory(results / "labs" / LAB)
    directory.begin(FrozenPlan(plan, "", {}, {}, gate=gate))
    directory.declare(plan.method.stages[0], plan.trials)
    records = trials(plan, {"log=disk": 1000.0, "log=memory": 1150.0}, observed=True)
    for record in records[: int(share * len(records))]:
        directory.store.keep(record, **evidence())
    return directory


def browser(results: Path, policy: AccessPolicy = POLICY) -> TestClient:
    """Returns a browser that has opened the printed address."""
    client = TestClient(application(Results(results), policy, Printer.silent()), base_url=US, follow_redirects=True)
    client.headers["origin"] = US
    assert client.get(f"/?token={policy.token}").status_code == 200
    return client
