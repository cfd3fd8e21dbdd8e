"""`ironbench explain`: where the difference of A and B comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ironbench.analyse.study import Study
    from ironbench.cli.compare import Held
    from ironbench.report.page import Page


def explain(
    a: Annotated[
        str,
        typer.Argument(
            help="The baseline: a record, series, label, cell or level of the lab in --results, or DIR/NAME."
        ),
    ],
    b: Annotated[str, typer.Argument(help="What is held against it.")],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="Where to write; without it, text on stdout.")
    ] = "",
    format: Annotated[
        str, typer.Option(help="html, png, svg, md, csv, json or text.  [default: by the name of FILE, else text]")
    ] = "",
    results: Annotated[
        str, typer.Option(metavar="DIR", help="Where records are.", envvar="IRONBENCH_RESULTS")
    ] = "ironbench-results",
    everything: Annotated[
        bool, typer.Option("--all", help="Name every fact that differs, not only those that tell.")
    ] = False,
    different_work: Annotated[
        bool, typer.Option("--different-work", help="Explain although options, data or versions differ.")
    ] = False,
) -> int:
    from ironbench.cli.compare import held_against
    from ironbench.cli.output import destination, written
    from ironbench.cli.selection import both

    chosen, place = destination(output, format)
    return written(page_of(held_against(*both(a, b, results), different_work), everything), chosen, place)


def page_of(held: Held, everything: bool = False) -> Page:
    """What the verb writes, for a browser, too."""
    from ironbench.analyse.compare import NO_VERDICT
    from ironbench.report.answer import comparison
    from ironbench.report.comparison import UNDECLARED
    from ironbench.report.explain import page

    found = held.found
    verdict = [comparison(effect) for effect in held.pairs if effect.finding.decides]
    doubt = UNDECLARED if held.pairs else NO_VERDICT
    cautions = (*found.left_out, *found.warnings, *found.unlike)
    return page(held.explained(), _study(held), verdict, doubt, cautions, everything)


def _study(held: Held) -> Study:
    """Of the two alone."""
    from ironbench.analyse.labstudy import of_two
    from ironbench.analyse.study import studies
    from ironbench.record.labs import LabDirectory
    from ironbench.report.derived import sentences

    one, other = held.sides
    if held.pairs:
        directory = LabDirectory(one.store.directory)
        look = max(1, len(directory.declared()))
        return of_two(directory.lab(), directory.records(), one.cells[0], other.cells[0], held.store, look)
    records = [*held.found.trials[0], *held.found.trials[1]]
    return studies(records, held.store, sentences(records))[0]
