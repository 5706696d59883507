"""The GPUs that run models, by the names that CUDA_VISIBLE_DEVICES takes. Nothing here starts CUDA, which reads that
variable once."""

import os
import re
import subprocess

from service.base.errors import ProviderUnavailable
from service.base.settings import Settings

LISTED = re.compile(r"\(UUID: ((GPU|MIG)-[^)]+)\)")
LIST_S = 30.0
"""Time in which the driver must list the GPUs; the first program that asks it may wait for it to load."""


def devices_of(settings: Settings) -> list[str | None]:
    """Return the devices that the settings name: GPUs, or MIG instances of GPUs; [None] for what CUDA chooses. Raises
    ProviderUnavailable: there is no such GPU, or the driver lists none."""
    if not settings.devices:
        return [None]
    if settings.devices == ("all",):
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        names = _of_driver() if visible is None else [name.strip() for name in visible.split(",") if name.strip()]
        if not names:
            raise ProviderUnavailable("ATTEND_DEVICES is all, but CUDA_VISIBLE_DEVICES lists no GPU")
    else:
        names = [_numbered(int(device)) if device.isdigit() else device for device in settings.devices]
    return [*dict.fromkeys(names)]


def _numbered(number: int) -> str:
    """A number counts among the GPUs that CUDA_VISIBLE_DEVICES lists, or among all."""
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = [name.strip() for name in listed.split(",")] if listed else [*map(str, range(number + 1))]
    if number >= len(names):
        raise ProviderUnavailable(f"ATTEND_DEVICES has {number}, but CUDA_VISIBLE_DEVICES lists {listed}")
    return names[number]


def _of_driver() -> list[str]:
    """In place of a GPU that is divided stand its MIG instances."""
    try:
        listed = subprocess.run(
            ["nvidia-smi", "-L"],  # noqa: S607  the driver's program, wherever the system has it
            check=True,
            capture_output=True,
            text=True,
            timeout=LIST_S,
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise ProviderUnavailable(f"ATTEND_DEVICES is all, but nvidia-smi cannot list the GPUs: {error}") from error
    devices: list[str] = []
    for name, kind in LISTED.findall(listed):
        if kind == "MIG" and devices and devices[-1].startswith("GPU"):
            devices.pop()
        devices.append(name)
    if not devices:
        raise ProviderUnavailable("ATTEND_DEVICES is all, but nvidia-smi lists no GPU")
    return devices
