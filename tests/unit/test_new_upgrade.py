"""`lab new upgrade --other DIR`: the versions by name, the older one as the baseline."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ironbench import engines
from ironbench.engines.postgres.installation import PostgresInstallation, build_features
from ironbench.errors import InputError
from ironbench.fields.new import NewLab
from ironbench.lab import builds, new
from ironbench.model.system import System


def lab(other: str) -> str:
    here = new.lab_context("upgrade", NewLab(engine="postgres", other=other), None)
    return new.text("upgrade", here, "upgrade.toml")


def test_the_older_version_is_the_baseline_and_both_have_their_numbers() -> None:
    versions = re.findall(r'^"(\d+)[^"]*" = (.*)$', lab("wheel:16").partition("[vary.version]")[2], re.MULTILINE)
    assert versions == [("16", '{ bin = "wheel:16" }'), ("18", "{}")]


BARE = "'--prefix=/opt/pg' '--without-icu'"
PACKAGED = "'--with-openssl' '--enable-debug' 'CFLAGS=-g -O2' '--with-icu' '--with-llvm' '--with-lz4' '--with-zstd'"


def built(major: int, configure: str) -> PostgresInstallation:
    return PostgresInstallation(Path("/opt/pg/bin"), f"{major}.4", major, configure)


@pytest.mark.parametrize(
    ("major", "configure", "features"),
    [
        (18, BARE, {"TLS": 0, "ICU": 0, "JIT": 0, "lz4": 0, "zstd": 0, "io_uring": 0}),
        (18, "'--with-liburing'", {"TLS": 0, "ICU": 1, "JIT": 0, "lz4": 0, "zstd": 0, "io_uring": 1}),
        (15, PACKAGED, {"TLS": 1, "ICU": 1, "JIT": 1, "lz4": 1, "zstd": 1}),
        (14, "'--with-ssl=openssl'", {"TLS": 1, "ICU": 0, "JIT": 0, "lz4": 0}),
        (18, "", None),
    ],
)
def test_features_of_a_build_are_read_from_its_configure_flags(
    major: int, configure: str, features: dict[str, int] | None
) -> None:
    assert build_features(built(major, configure)) == features


@pytest.mark.parametrize(
    ("old", "text", "unknown"),
    [
        (PACKAGED, "15.4 is built with TLS, ICU, JIT, lz4 and zstd, but 18.4 is not", ""),
        (BARE, "", ""),
        ("", "", "the build options of 15.4 are unknown"),
    ],
    ids=["packaged", "alike", "unknown"],
)
def test_a_new_upgrade_warns_of_builds_that_differ_or_are_unknown(
    monkeypatch: pytest.MonkeyPatch, old: str, text: str, unknown: str
) -> None:
    installations = {"/opt/pg15": built(15, old), "/opt/pg18": built(18, BARE)}
    postgres = engines.get("postgres")
    monkeypatch.setattr(
        type(postgres), "build_features", lambda _, system: build_features(installations[system.settings["bin"]])
    )
    monkeypatch.setattr(type(postgres), "installations", lambda _: (("15.4", "/opt/pg15"), ("18.4", "/opt/pg18")))
    here = new.lab_context("upgrade", NewLab(engine="postgres"), None)
    warnings = " ".join(new.warnings("upgrade", here))
    assert (text in warnings, unknown in warnings) == (True, True) and bool(warnings) == bool(text or unknown)
    written = " ".join(line.removeprefix("# ") for line in new.text("upgrade", here, "upgrade.toml").splitlines())
    assert all(f"Warning: {one}" in written for one in new.warnings("upgrade", here))
    assert '"15.4" = { bin = "/opt/pg15" } "18.4" = { bin = "/opt/pg18" }' in written


def test_the_versions_that_come_with_ironbench_are_built_alike() -> None:
    here = new.lab_context("upgrade", NewLab(engine="postgres", other="wheel:16"), None)
    assert new.warnings("upgrade", here) == [] and "Warning" not in new.text("upgrade", here, "upgrade.toml")


def test_one_configuration_of_each_build_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    flags = {"15": PACKAGED, "18": BARE}
    monkeypatch.setattr(
        type(engines.get("postgres")),
        "build_features",
        lambda _, system: build_features(built(int(system.settings["bin"]), flags[system.settings["bin"]])),
    )
    systems = {
        f"version={version} clients={clients}": System("postgres", "lab", {"bin": version})
        for version in flags
        for clients in (1, 8)
    }
    assert builds.differing(systems).count("is built with") == 1
    assert builds.differing({}) == ""


def test_a_version_is_not_compared_with_itself() -> None:
    with pytest.raises(InputError, match="which the lab already measures"):
        lab("wheel:18")
