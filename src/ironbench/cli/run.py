"""`ironbench run`: one system, one workload, a load or a sweep of loads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ironbench.cli.mistakes import number, or_search, whole
from ironbench.cli.options import JSON
from ironbench.printer import Printer
from ironbench.words import counted

if TYPE_CHECKING:
    from ironbench.experiment.run_options import RunOptions
    from ironbench.model.lab import Claim
    from ironbench.model.plan import Plan
    from ironbench.model.record import Record
    from ironbench.model.secrets import Secrets
    from ironbench.record import Store

ARGUMENT = typer.Argument
OPTION = typer.Option


def run(
    workload: Annotated[str, ARGUMENT(help="A workload (see `ironbench list workloads`), or `script`.")],
    files: Annotated[
        list[str] | None,
        ARGUMENT(help="For `script`: FILE or FILE@WEIGHT, one or more; - is standard input."),
    ] = None,
    engine: Annotated[
        str,
        OPTION(
            metavar="NAME",
            help="Database to run on: see `ironbench list engines`.  [default: the first that the workload runs on]",
        ),
    ] = "",
    dsn: Annotated[
        str, OPTION(metavar="ADDRESS", help="A server that is already running, as URI or key=value pairs.")
    ] = "",
    server: Annotated[
        str, OPTION(metavar="ssh://USER@HOST", help="Machine of the --dsn server: ironbench samples it over ssh.")
    ] = "",
    control: Annotated[
        str,
        OPTION(
            metavar="ssh",
            help="Allow changes of the --server machine: CPUs (--server-cpus); restart and empty page cache "
            "(--cache cold). ironbench undoes what lasts.",
        ),
    ] = "",
    restart: Annotated[
        str,
        OPTION(
            metavar="UNIT",
            help="What restarts the --dsn server on its machine: a systemd unit `NAME.service`, or a command.",
        ),
    ] = "",
    clients: Annotated[
        str,
        OPTION(
            metavar="N",
            help="Number of clients; 1,2,4,8 is a sweep; auto or auto:1-128 searches for the best; "
            "ramp:1-64/60s is a curve of how many are active.",
        ),
    ] = "1",
    threads: Annotated[
        int,
        OPTION(
            parser=whole("--threads"),
            metavar="N",
            help="Driving threads, shared by the clients; no more are started than there are clients.",
        ),
    ] = 1,
    workers: Annotated[
        int,
        OPTION(
            parser=whole("--workers"),
            metavar="N",
            help="Processes, started by Ray, that share the clients or the rate; 0: ironbench itself drives.",
        ),
    ] = 0,
    cluster: Annotated[
        str,
        OPTION(metavar="ADDRESS|auto", help="Running Ray cluster with a machine for each worker."),
    ] = "",
    fewer_workers: Annotated[
        bool, OPTION(help="Go on with the machines that are left after one of the cluster was lost.")
    ] = False,
    rate: Annotated[
        float | None,
        OPTION(
            parser=or_search(number("--rate")),
            metavar="N",
            help="Open loop: transactions started per second, all clients together; auto:100-5000 searches; "
            "ramp:100-5000/60s, steps:100,500/20s, sine:100-500/60s and file:FILE are curves.",
        ),
    ] = None,
    limit: Annotated[
        list[str] | None,
        OPTION(metavar="METRIC=VALUE", help="Limit that a search keeps, e.g. response_time_p99_s=20ms."),
    ] = None,
    arrivals: Annotated[
        str, OPTION(metavar="KIND", help="Open loop: `poisson` or `fixed` intervals between starts.")
    ] = "poisson",
    duration: Annotated[
        str,
        OPTION(metavar="TIME", help="Measured time of each trial, e.g. 30s.  [default: 30s, or the workload's own]"),
    ] = "",
    transactions: Annotated[
        int | None,
        OPTION(parser=whole("--transactions"), metavar="N", help="Transactions per client, instead of --duration."),
    ] = None,
    warmup: Annotated[
        str,
        OPTION(
            metavar="TIME",
            help="Load before the measured time, not measured; `auto`: a pilot trial decides.  "
            "[default: 5s, or the workload's own]",
        ),
    ] = "",
    think_time: Annotated[
        str, OPTION(metavar="TIME", help="Closed loop: pause of each client between transactions, e.g. 10ms.")
    ] = "0s",
    reconnect: Annotated[
        int,
        OPTION(
            parser=whole("--reconnect"),
            metavar="N",
            help="Transactions after which a client opens a new connection: 1 is pgbench's -C; 0: never.",
        ),
    ] = 0,
    max_tries: Annotated[
        int | None,
        OPTION(
            parser=whole("--max-tries"),
            metavar="N",
            help="Tries after serialization failures and deadlocks; 0: without limit.  "
            "[default: 1, or the workload's own]",
        ),
    ] = None,
    on_error: Annotated[
        str,
        OPTION(
            metavar="HOW",
            help="`stop`: an error in the first second ends the trial, unless another try can succeed. `continue`: the "
            "transaction counts as failed, and the trial goes on.",
        ),
    ] = "stop",
    reconnect_on_loss: Annotated[
        bool,
        OPTION(
            "--reconnect-on-loss",
            help="A client whose connection is lost opens a new one and continues. Without it the trial ends, or with "
            "--on-error continue only the client, as in pgbench.",
        ),
    ] = False,
    report_per_statement: Annotated[
        bool, OPTION("--report-per-statement", "-r", help="Time every SQL command of the scripts by itself.")
    ] = False,
    progress: Annotated[
        int | None,
        OPTION(
            "--progress",
            "-P",
            parser=whole("--progress"),
            metavar="N",
            help="Print a line on stderr every N seconds: transactions per second, response time, failures.",
        ),
    ] = None,
    protocol: Annotated[
        str,
        OPTION(
            metavar="NAME",
            help="Send statements `prepared`, `extended` or `simple`, where the engine has the choice.  "
            "[default: simple for script, select-only, tpcb-like and simple-update, as in pgbench; else prepared]",
        ),
    ] = "",
    repeats: Annotated[
        int | None,
        OPTION(
            parser=whole("--repeats"),
            metavar="N",
            help="Blocks: trials of every client count, each block in random order.  [default: 1]",
        ),
    ] = None,
    budget: Annotated[
        str, OPTION(metavar="TIME", help="Time for the whole run, e.g. 5m: chooses repeats and duration.")
    ] = "",
    seed: Annotated[
        int | None,
        OPTION(
            parser=whole("--seed"),
            metavar="N",
            help="Seed of random order and random values; the same seed gives the same ones.  [default: a new one]",
        ),
    ] = None,
    define: Annotated[list[str] | None, OPTION("-D", metavar="VAR=VALUE", help="Variable for the scripts.")] = None,
    with_: Annotated[list[str] | None, OPTION("--with", metavar="KEY=VALUE", help="Workload option.")] = None,
    set_: Annotated[list[str] | None, OPTION("--set", metavar="KEY=VALUE", help="Engine setting.")] = None,
    dump: Annotated[
        str, OPTION(metavar="FILE", help="Dump of your own database (a file or directory); every trial starts from it.")
    ] = "",
    setup: Annotated[
        list[str] | None,
        OPTION(
            metavar="FILE",
            help="SQL file that makes your own data, or runs after the dump is restored; may be repeated.",
        ),
    ] = None,
    template: Annotated[
        str, OPTION(metavar="DB", help="Database on the --dsn server; every trial starts from a copy of it.")
    ] = "",
    check: Annotated[
        str, OPTION(metavar="SQL", help="Query that must return true after every trial; otherwise the trial is voided.")
    ] = "",
    data: Annotated[str, OPTION(metavar="DIR|DEVICE", help="Directory or emulated device for the data.")] = "",
    temp: Annotated[str, OPTION(metavar="DIR|DEVICE", help="The same for temporary files (spills).")] = "",
    log: Annotated[str, OPTION(metavar="DIR|DEVICE", help="The same for the log (WAL).")] = "",
    capacity: Annotated[
        str,
        OPTION(
            metavar="SIZE",
            help="Size of each emulated device.  [default: twice the data and some more; for a log alone 2GiB, for "
            "spills 1GiB and the data]",
        ),
    ] = "",
    fs: Annotated[str, OPTION(metavar="NAME", help="File system of emulated devices: ext4, xfs or btrfs.")] = "",
    backing: Annotated[
        str, OPTION(metavar="DIR|ram", help="What holds the bytes of emulated devices.  [default: ram]")
    ] = "",
    trace: Annotated[
        str, OPTION(metavar="DIR", help="Trace every I/O of emulated devices into Parquet files there.")
    ] = "",
    crash: Annotated[
        str,
        OPTION(
            metavar="HOW",
            help="Cut the power of emulated devices after each trial. Writes that were not flushed are lost: "
            "all (`lose`), some (`subset`), or in part (`torn`). Then the checks run.",
        ),
    ] = "",
    parallelism: Annotated[
        int | None,
        OPTION(
            parser=whole("--parallelism"),
            metavar="N",
            help="Processes or threads that one statement may use at most; 1: no parallelism.",
        ),
    ] = None,
    ideal: Annotated[
        str, OPTION(metavar="PARTS", help="Parts made as good as free, joined by `,`: log, data, temp, client.")
    ] = "",
    memory: Annotated[str, OPTION(metavar="SIZE", help="The engine's own data cache, e.g. 1GB.")] = "",
    memory_total: Annotated[
        str, OPTION(metavar="SIZE", help="Enforced limit on the engine and the page cache of its files, e.g. 2GB.")
    ] = "",
    server_cpus: Annotated[str, OPTION(metavar="CPUS", help="CPUs of the engine, e.g. 0 or 0-3.")] = "",
    client_cpus: Annotated[str, OPTION(metavar="CPUS", help="CPUs of the driving threads.")] = "",
    cache: Annotated[
        str,
        OPTION(
            metavar="STATE", help="Caches at the start of each trial: `cold`, `warm` or `hot`.  [default: as they are]"
        ),
    ] = "",
    checkpoint: Annotated[
        str,
        OPTION(
            metavar="TIME",
            help="Time from one checkpoint to the next.  [default: three in each trial that writes, on a server that "
            "ironbench starts; else the server's setting]",
        ),
    ] = "",
    io: Annotated[
        str, OPTION(metavar="NAME", help="How clients do I/O over a network: `auto`, `io_uring` or `epoll`.")
    ] = "auto",
    observe: Annotated[bool, OPTION("--observe/--no-observe", help="Sample machine and server during trials.")] = True,
    prepare: Annotated[
        str,
        OPTION(
            metavar="COMMAND",
            help="Command to run (`sh -c`) before the engine starts; `ask: …` asks a person and waits for Enter.",
        ),
    ] = "",
    cleanup: Annotated[
        str, OPTION(metavar="COMMAND", help="Command that undoes --prepare, however the run ends.")
    ] = "",
    command_limit: Annotated[
        str, OPTION(metavar="TIME", help="Time limit of --prepare and --cleanup, each.  [default: 2m]")
    ] = "",
    tag: Annotated[
        list[str] | None,
        OPTION(
            metavar="KEY=VALUE", help="Note for every record, e.g. commit=1f3c2a9; `ironbench history` orders by it."
        ),
    ] = None,
    label: Annotated[str, OPTION(metavar="NAME", help="Name of this system in tables and charts.")] = "",
    reference_score: Annotated[
        float | None,
        OPTION(
            parser=number("--reference-score"),
            metavar="N",
            help="Score of its processors in another benchmark: charts of queries show the ratio to expect from it.",
        ),
    ] = None,
    require: Annotated[
        list[str] | None,
        OPTION(
            metavar="LIMIT",
            help='What each configuration must meet, e.g. "p99 < 10ms" or "rate = 200/s"; may be repeated. Exit code 4 '
            "if the confidence interval refutes it, 3 if that is inconclusive.",
        ),
    ] = None,
    results: Annotated[
        str, OPTION(metavar="DIR", help="Where records go.", envvar="IRONBENCH_RESULTS")
    ] = "ironbench-results",
    plan_only: Annotated[
        bool, OPTION("--plan", help="Show what would be done and how long it takes; start nothing.")
    ] = False,
    resume: Annotated[
        bool, OPTION("--resume", help="Go on with the newest run of the same system, work and load.")
    ] = False,
    json: JSON = False,
) -> int:
    typed = locals()
    from ironbench.experiment import run_options

    # What was not given stays at its default there; options that may be repeated come as lists.
    given: dict[str, Any] = {name: typed[name] for name in run_options.RunOptions.__dataclass_fields__}
    given = {name: tuple(one) if isinstance(one, list) else one for name, one in given.items() if one is not None}
    return execute(run_options.RunOptions(**given), json, plan_only, resume, tuple(require or ()))


def execute(
    options: RunOptions, json: bool, plan_only: bool = False, resume: bool = False, require: Sequence[str] = ()
) -> int:
    """Plans, runs, shows; the exit code (docs/guide/statuses.md)."""
    from ironbench.experiment import declare, run_options, upkeep
    from ironbench.model.system import Setup
    from ironbench.plan import requirements
    from ironbench.record import Store

    claims = requirements.read(require)
    store = Store(Path(options.results))
    plan, secrets = run_options.resumed(options, store) if resume else run_options.planned(options)
    requirements.refuse_undecidable(claims, plan)
    if plan_only:
        from ironbench.experiment import loop
        from ironbench.views.plans import run as plan_page

        before = run_options.measured(store, plan.series) if resume else []
        over, drawn = loop.is_over(plan, store, before), options.seed is None and not resume
        plan_page.show(plan, before, over, drawn, json)
        return 0
    upkeep.require_person(plan.system.commands)
    declare.refuse_in_use([Setup(plan.trials[0].cell, plan.system, plan.choice)])
    store.validate()
    return _measured(plan, secrets, store, json, resume, claims)


def _measured(plan: Plan, secrets: Secrets, store: Store, json: bool, resume: bool, claims: Sequence[Claim]) -> int:
    # What a refused command need not import is imported here: numpy takes longer than the refusal.
    from ironbench import engines, workloads
    from ironbench.cli import requirements, verdict
    from ironbench.experiment import declare, loop, run_options, schedule, search, upkeep
    from ironbench.views.plans.estimate import time_of

    printer = Printer()
    workload = workloads.get(plan.choice.workload)
    compiled_for = engines.get(plan.system.engine).protocol(plan.trials[0].cell.load.protocol)
    cautions = workload.cautions(plan.system.engine, plan.choice, compiled_for)
    for caution in (*cautions, *declare.durability(plan.system)):
        printer.say(f"caution: {caution}")
    own = plan.choice.data is not None and plan.choice.data.imported
    if (where := workload.where(plan.system)) and not own:
        printer.say(where)
    with store.measuring(plan.series):
        if upkeep.make_up(printer.say, plan.series):
            return 1
        before = run_options.measured(store, plan.series) if resume else []
        if loop.is_over(plan, store, before):
            printer.say(loop.nothing_ran(before))
        elif plan.search:
            printer.say(f"search for the best {plan.search.of} in {plan.search.low} to {plan.search.high}")
        else:
            count = len(plan.trials) + plan.confirmations
            usable = sum(record.status.comparable for record in before)
            left = schedule.remaining(plan, before)
            done = f"{min(usable, count)} of {counted(count, 'trial')} measured already; " if usable else ""
            printer.say(f"{done}{counted(len(left.trials) + left.confirmations, 'trial')}, {time_of(left)}")
        try:
            records = loop.run(plan, secrets, store, printer, before)
        except KeyboardInterrupt:  # between two trials, or before the first
            printer.say(_goes_on(run_options.measured(store, plan.series)))
            return verdict.INTERRUPTED
    judgements = requirements.judged(claims, records)
    if json:
        from ironbench.report.as_json import run_document

        answer = search.answer(plan.search, records) if plan.search else None
        printer.data(run_document(records, store, answer, requirements.fields(judgements)))
    else:
        from ironbench.report.formats.text import run_summary, search_summary

        if plan.search and plan.search.of == "rate":
            printer.data(search_summary(plan.search, records, store))
        else:
            run_summary(records, store, printer)
        if judgements:
            printer.data(f"\n{requirements.text(judgements)}")
        printer.say(f"records: {store.directory / 'trials'}  series: {plan.series}")
    verdict.require_kept(store, records)
    code = upkeep.code(verdict.code_of_run(records), plan.series, printer.say)
    if code in (0, verdict.SUSPECT) and requirements.code(judgements):
        printer.say(requirements.words(judgements))
        return requirements.code(judgements)
    if code == verdict.SUSPECT:
        printer.say(f"exit code {verdict.SUSPECT}: {verdict.suspect_words(records)}")
    elif code == verdict.INTERRUPTED:
        printer.say(_goes_on(records))
    return code


def _goes_on(records: Sequence[Record]) -> str:
    """What Ctrl-C left, and the way on; `--resume` finds a run by its records."""
    kept = counted(sum(record.status.comparable for record in records), "trial")
    way = "the same command with --resume goes on" if records else "start it again"
    return f"interrupted: {kept} measured; {way}"
