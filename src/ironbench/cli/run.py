"""`ironbench run`: one system, one workload, a load or a sweep of loads."""

from __future__ import annotations

from typing import Annotated

import typer

from ironbench.cli.mistakes import number, or_search, whole

ARGUMENT = typer.Argument
OPTION = typer.Option


def run(
    workload: Annotated[str, ARGUMENT(help="A workload (see `ironbench list workloads`), or `script`.")],
    files: Annotated[
        list[str] | None,
        ARGUMENT(help="For `script`: FILE or FILE@WEIGHT, one or more; - is standard input."),
    ] = None,
    engine: Annotated[
        str, OPTION(help="See `ironbench list engines`.  [default: the preferred one that the workload runs on]")
    ] = "",
    dsn: Annotated[str, OPTION(help="A server that is already running, as URI or key=value pairs.")] = "",
    clients: Annotated[
        str, OPTION(help="Number of clients; 1,2,4,8 is a sweep; auto or auto:1-128 searches for the best.")
    ] = "1",
    threads: Annotated[
        int, OPTION(parser=whole("--threads"), metavar="N", help="Driving threads, shared by the clients.")
    ] = 1,
    rate: Annotated[
        float | None,
        OPTION(
            parser=or_search("--rate", number("--rate")),
            metavar="N",
            help="Open loop: transactions started per second, all clients together; auto:100-5000 searches.",
        ),
    ] = None,
    limit: Annotated[
        list[str] | None,
        OPTION(metavar="METRIC=VALUE", help="Of a search: what must not be exceeded, e.g. response_time_p99_s=20ms."),
    ] = None,
    arrivals: Annotated[str, OPTION(help="Open loop: `poisson` or `fixed` intervals.")] = "poisson",
    duration: Annotated[
        str, OPTION(help="Measured time of each trial, e.g. 30s.  [default: 30s, or the workload's own]")
    ] = "",
    transactions: Annotated[
        int | None,
        OPTION(parser=whole("--transactions"), metavar="N", help="Transactions per client, instead of --duration."),
    ] = None,
    warmup: Annotated[
        str,
        OPTION(help="Driven before the measured time, not measured; `auto`: a pilot decides.  [default: 5s, if any]"),
    ] = "",
    think_time: Annotated[
        str, OPTION(help="Closed loop: pause of each client between transactions, e.g. 10ms.")
    ] = "0s",
    max_tries: Annotated[
        int,
        OPTION(
            parser=whole("--max-tries"),
            metavar="N",
            help="Tries after serialization failures and deadlocks; 0: without limit.",
        ),
    ] = 1,
    on_error: Annotated[
        str,
        OPTION(
            metavar="HOW",
            help="`stop`: an error of the first second that no further try mends ends the trial. `continue`: the "
            "transaction only counts as failed.",
        ),
    ] = "stop",
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
            help="A line on stderr every N seconds: transactions per second, response time, failures.",
        ),
    ] = None,
    protocol: Annotated[str, OPTION(help="How statements are sent: `prepared`, `extended` or `simple`.")] = "prepared",
    repeats: Annotated[
        int,
        OPTION(parser=whole("--repeats"), metavar="N", help="Trials of every client count, in random order."),
    ] = 1,
    seed: Annotated[
        int | None,
        OPTION(
            parser=whole("--seed"),
            metavar="N",
            help="Of random order and random values; the same seed draws the same.  [default: a new one]",
        ),
    ] = None,
    define: Annotated[list[str] | None, OPTION("-D", metavar="VAR=VALUE", help="Variable for the scripts.")] = None,
    with_: Annotated[list[str] | None, OPTION("--with", metavar="KEY=VALUE", help="Workload option.")] = None,
    set_: Annotated[list[str] | None, OPTION("--set", metavar="KEY=VALUE", help="Engine setting.")] = None,
    data: Annotated[str, OPTION(metavar="DIR|DEVICE", help="Directory or emulated device for the data.")] = "",
    temp: Annotated[str, OPTION(metavar="DIR|DEVICE", help="The same for spills.")] = "",
    log: Annotated[str, OPTION(metavar="DIR|DEVICE", help="The same for the log (WAL).")] = "",
    capacity: Annotated[
        str, OPTION(metavar="SIZE", help="Of each emulated device.  [default: twice the data, and some more]")
    ] = "",
    fs: Annotated[str, OPTION(metavar="NAME", help="File system of emulated devices: ext4, xfs or btrfs.")] = "",
    backing: Annotated[
        str, OPTION(metavar="DIR|ram", help="What holds the bytes of emulated devices.  [default: ram]")
    ] = "",
    trace: Annotated[
        str, OPTION(metavar="DIR", help="Where Parquet traces of emulated devices go, if they are wanted.")
    ] = "",
    crash: Annotated[
        str,
        OPTION(
            metavar="HOW",
            help="Power cut after each trial, on emulated devices: `lose`, `subset` or `torn` says what becomes of "
            "writes that were not flushed. The checks then judge what is left.",
        ),
    ] = "",
    memory: Annotated[str, OPTION(metavar="SIZE", help="The engine's own data cache, e.g. 1GB.")] = "",
    memory_total: Annotated[
        str, OPTION(metavar="SIZE", help="Enforced limit on the engine and the page cache of its files, e.g. 2GB.")
    ] = "",
    server_cpus: Annotated[str, OPTION(metavar="CPUS", help="CPUs of the engine, e.g. 0 or 0-3.")] = "",
    client_cpus: Annotated[str, OPTION(metavar="CPUS", help="CPUs of the driving threads.")] = "",
    cache: Annotated[
        str, OPTION(help="Caches at the start of each trial: `cold`, `warm` or `hot`.  [default: as they are]")
    ] = "",
    checkpoint: Annotated[
        str, OPTION(metavar="TIME", help="Time from checkpoint to checkpoint.  [default: as it is set]")
    ] = "",
    io: Annotated[str, OPTION(help="Client I/O: `auto`, `io_uring` or `epoll`.")] = "auto",
    observe: Annotated[bool, OPTION("--observe/--no-observe", help="Sample machine and server during trials.")] = True,
    label: Annotated[str, OPTION(metavar="NAME", help="Name of this system in tables and charts.")] = "",
    reference_score: Annotated[
        float | None,
        OPTION(
            parser=number("--reference-score"),
            metavar="N",
            help="Of its processors in a benchmark of others: charts of queries show what it lets expect.",
        ),
    ] = None,
    results: Annotated[
        str, OPTION(metavar="DIR", help="Where records go.", envvar="IRONBENCH_RESULTS")
    ] = "ironbench-results",
    json: Annotated[bool, OPTION("--json", help="One JSON document on stdout.")] = False,
) -> int:
    """Drive WORKLOAD against a database and record every trial."""
    from ironbench.cli import request

    asked = request.Asked(
        workload=workload,
        files=tuple(files or ()),
        engine=engine,
        dsn=dsn,
        clients=clients,
        threads=threads,
        rate=rate,
        limit=tuple(limit or ()),
        arrivals=arrivals,
        duration=duration,
        transactions=transactions,
        warmup=warmup,
        think_time=think_time,
        max_tries=max_tries,
        on_error=on_error,
        report_per_statement=report_per_statement,
        progress=progress,
        protocol=protocol,
        repeats=repeats,
        seed=seed,
        define=tuple(define or ()),
        with_=tuple(with_ or ()),
        set_=tuple(set_ or ()),
        data=data,
        temp=temp,
        log=log,
        memory=memory,
        memory_total=memory_total,
        server_cpus=server_cpus,
        client_cpus=client_cpus,
        cache=cache,
        checkpoint=checkpoint,
        io=io,
        observe=observe,
        label=label,
        reference_score=reference_score,
        results=results,
        capacity=capacity,
        fs=fs,
        backing=backing,
        trace=trace,
        crash=crash,
    )
    return request.carried_out(asked, json)
