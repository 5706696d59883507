"""How many processes a service has."""

from service.base.cores import usable_cores
from service.base.settings import Settings
from service.workers.devices import devices_of

MAX_WORKERS = MAX_SERVERS = 4
"""Limits of the default numbers: each process takes memory."""


def n_workers(settings: Settings, provider: str) -> int:
    """Return the number of processes that run models: one for each core, but few, since the server needs a core too; on
    CUDA one for each device."""
    default = min(settings.threads or usable_cores(), MAX_WORKERS) if provider == "cpu" else 1
    return settings.loops or default


def reason_for_workers(settings: Settings, provider: str) -> str:
    """Return why there are as many workers that share models."""
    if settings.loops:
        return "as ATTEND_LOOPS says"
    if provider != "cpu":
        return "one for each GPU"
    if (settings.threads or usable_cores()) > MAX_WORKERS:
        return f"{MAX_WORKERS} at most"
    return "one for each thread of ATTEND_THREADS" if settings.threads else "one for each core"


def n_servers(settings: Settings) -> int:
    """Return the number of processes that speak HTTP: one, and more if the workers leave cores free. A worker keeps
    about half a core of a server busy.

    Raises:
        ProviderUnavailable: a device that the settings name is not there.
    """
    if settings.loops == 0:
        return 1
    # Whether there is a GPU that works is not known yet.
    provider = "cuda" if settings.provider == "cuda" or settings.devices else "cpu"
    n_devices = len(devices_of(settings))
    free = usable_cores() - n_workers(settings, provider) * n_devices
    return settings.servers or max(1, min(MAX_SERVERS, free // 2))
