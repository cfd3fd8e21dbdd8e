"""Fields of a new lab: the options of `ironbench lab new` and the inputs of the forms of `ironbench serve`."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from ironbench.fields.row import row, same_as
from ironbench.fields.sections import DataSection, FieldSection, SystemSection
from ironbench.ranges import Range


class NewLab(FieldSection):
    """Contents of a new lab file. Which fields are used depends on the kind of lab."""

    dsn: Annotated[str, same_as(SystemSection, "dsn", " ironbench reads its engine and settings.")] = ""
    engine: Annotated[str, same_as(SystemSection, "engine")] = ""
    dump: Annotated[str, same_as(DataSection, "dump")] = ""
    script: Annotated[
        list[str],
        row(
            "A pgbench script with your application's transactions, as FILE or FILE@WEIGHT; may be repeated.",
            metavar="FILE",
        ),
    ] = field(default_factory=list)
    setting: Annotated[
        str, row("For `setting`: the setting to vary.", usual="the first setting that ironbench suggests")
    ] = ""
    index: Annotated[str, row("For `index`: SQL file that creates the index.", metavar="FILE")] = ""
    before: Annotated[str, row("For `query`: SQL file with the current statement.", metavar="FILE")] = ""
    after: Annotated[str, row("For `query`: SQL file with the rewritten statement.", metavar="FILE")] = ""
    other: Annotated[
        str,
        row(
            "For `upgrade`: the directory with the programs of the other version or, with --dsn, the address of "
            "its server. For `machines`: the address of the server on the other machine.",
            metavar="DIR|ADDRESS",
        ),
    ] = ""
    device: Annotated[
        list[str],
        row(
            "For `storage`: a device model to emulate (see `ironbench list devices`); may be repeated.",
            usual="two cloud volumes and a local drive",
            metavar="MODEL",
            names="devices",
        ),
    ] = field(default_factory=list)
    today: Annotated[
        float,
        row(
            "For `headroom`: today's peak load in transactions per second.",
            Range(0.001, 1e9, example="800", note="transactions per second"),
            metavar="RATE",
        ),
    ] = 0.0
    capture: Annotated[
        str,
        row("A capture of production work to replay in place of scripts, from `ironbench capture`.", metavar="FILE"),
    ] = ""
