"""Data checks are not measured: emulated devices answer at once during checks."""

from typing import cast

import pytest

from ironbench.devices.mounting import Devices, Mounted
from ironbench.errors import FailureError


class _Told:
    """A device that records the commands it receives."""

    def __init__(self, alive: bool = True) -> None:
        self.alive = alive
        self.models: list[bool] = []

    def set_model_timing(self, on: bool) -> None:
        if not self.alive:
            raise FailureError("emulated device", "the process ended")
        self.models.append(on)


def test_devices_follow_their_models_again_however_the_checks_end() -> None:
    told = _Told()
    with pytest.raises(ZeroDivisionError), Devices([cast("Mounted", told)]).at_once():
        assert told.models == [False]
        raise ZeroDivisionError
    assert told.models == [False, True]


def test_a_device_that_is_gone_does_not_keep_the_trial_from_its_record() -> None:
    with Devices([cast("Mounted", _Told(alive=False))]).at_once():
        pass
