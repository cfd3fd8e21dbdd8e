"""The `igen-cpu` workload: computes images of the Mandelbrot set. Half of the work is floating-point arithmetic, and
the other half integer arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ironbench.errors import FailureError, InputError, written
from ironbench.model.system import Choice, Load, System
from ironbench.model.work import Outcome, Work
from ironbench.workloads import free_memory, kernels
from ironbench.workloads.base import Option, Workload

_POINT_BYTES = 4
"""Memory per point of a thread's image, in bytes. A point is stored as its number of iterations."""
_DRAWN_BYTES = 12
"""Memory per point while an image file is written, in bytes: the iterations, the packed colour, and the colour as
Python bytes."""


class IgenCpu(Workload):
    name = "igen-cpu"
    doc = (
        "Uses only the CPU: computes pictures of the Mandelbrot set, half of them with "
        "floating-point arithmetic and half with integer arithmetic. Each client is a thread, and "
        "each transaction is a picture."
    )
    needs = ("bare machine",)
    counts = ("picture", "pictures")
    drives = True
    honours = kernels.HONOURS
    usual_warmup_s = 1.0
    options = (
        Option(
            "variant",
            "scalar",
            "scalar: compute one point at a time; vector: compute several points at once with vector instructions",
            ("scalar", "vector"),
        ),
        Option("width", "480", "width of the picture in points", lowest=8, highest=20000),
        Option("height", "320", "height of the picture in points", lowest=8, highest=20000),
        Option("limit", "256", "maximum iterations per point", lowest=8, highest=1_000_000),
        kernels.PIN,
        Option("png", "", "write the picture to this file, e.g. png=set.png", incidental=True, path="file"),
    )

    def accepts(self, system: System, load: Load, choice: Choice) -> None:
        super().accepts(system, load, choice)
        path = Path(choice.options["png"])
        if choice.options["png"] and (path.is_dir() or not path.absolute().parent.is_dir()):
            raise InputError(
                written("workload.with", f"png={path}"),
                "is not in an existing directory",
                "give the path of a file, e.g. png=set.png",
            )
        options = choice.options
        points = int(options["width"]) * int(options["height"])
        subject = " ".join(written("workload.with", f"{side}={options[side]}") for side in ("width", "height"))
        free_memory.require(subject, load.clients, points * _POINT_BYTES)
        if options["png"]:
            free_memory.require(f"{subject} {written('workload.with', f'png={path}')}", 1, points * _DRAWN_BYTES)

    def drive(self, work: Work) -> Outcome:
        options = work.choice.options
        size = {name: int(options[name]) for name in ("width", "height", "limit")}
        if options["png"]:
            _picture(Path(options["png"]), work.stopping, **size)
        result = kernels.run_kernel(work, {"kind": "mandelbrot", "variant": options["variant"], **size})
        first = result.reports[0]
        steps = first["float_steps"] + first["integer_steps"]
        return Outcome(
            transactions=result.units,
            histograms={"response_time": result.histograms[""]},
            timeline=result.columns["timeline"],
            seconds=result.columns["seconds"],
            metrics={
                "throughput": result.rate,
                **({"float_operations_share": first["float_steps"] / steps} if steps else {}),
                "kernel_operations_per_s": result.rate * first["operations"],
            },
            checks=(kernels.right("checksum of the picture", result.reports, result.units),),
            facts={**result.facts, "instructions": first["instructions"], "checksum": first["checksum"]},
            warnings=result.warnings,
            inside=True,
        )


def _picture(path: Path, stopping: Callable[[], bool], width: int, height: int, limit: int) -> None:
    """Writes the image to a file. Writes nothing if the trial is being stopped. Raises FailureError if writing
    fails."""
    from ironbench import _core

    picture = _core.mandelbrot_png(width, height, limit, stopping)
    if picture is None:
        return
    try:
        path.write_bytes(picture)
    except OSError as error:
        raise FailureError(str(path), error.strerror or str(error), "use another file") from error


WORKLOAD = IgenCpu()
