"""The devices that the cells of a lab name: in `[devices]`, or as expressions in `[layout]`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ironbench import ranges
from ironbench.devices import expression, file_systems
from ironbench.devices.arrange import RAM, ROLES, Wanted, is_expression
from ironbench.errors import InputError
from ironbench.plan.sections import DeviceSection, LayoutSection


def wanted(devices: Mapping[str, str | DeviceSection], layout: LayoutSection, folder: Path) -> tuple[Wanted, ...]:
    """In the order of the roles; roles that name the same device share it. `folder`: the lab file's. InputError."""
    named: dict[str, list[str]] = {}
    for role in ROLES:
        told = getattr(layout, role)
        if is_expression(told):
            key = told if told in devices else expression.normal(f"layout.{role}", told)
            named.setdefault(key, []).append(role)
    return tuple(_wanted(name, tuple(roles), devices.get(name), folder) for name, roles in named.items())


def _wanted(name: str, roles: tuple[str, ...], told: str | DeviceSection | None, folder: Path) -> Wanted:
    if told is None:
        return Wanted(name, roles)
    section, subject = DeviceSection(model=told) if isinstance(told, str) else told, f"devices.{name}"
    if not section.model:
        raise InputError(f"{subject}.model", "is missing", "name a model: `ironbench list devices`")
    backing = Path(section.backing or RAM).expanduser()
    return Wanted(
        expression.normal(f"{subject}.model", section.model),
        roles,
        int(ranges.read("capacity", f"{subject}.capacity", section.capacity)) if section.capacity != "" else None,
        section.fs or file_systems.DEFAULT,
        RAM if section.backing in ("", RAM) else str((folder / backing).absolute()),
        name,
    )
