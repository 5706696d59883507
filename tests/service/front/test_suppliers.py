"""Models that are loaded anew, and take the place of those that serve."""

import asyncio
import threading

import pytest

from service.base.errors import ReloadRefused, StartRefused
from service.front.suppliers import LoadingSupplier

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("error", [StartRefused("a model is damaged"), OSError("a model is damaged")])
async def test_the_log_says_why_models_stay_even_if_who_asked_has_left(
    caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    gate = threading.Event()

    def load(_: object) -> None:
        gate.wait()
        raise error

    async def take(_: None) -> None:
        raise AssertionError("there is nothing to take")

    supplier = LoadingSupplier(load, take, None)
    asked = asyncio.create_task(supplier.reload())
    await asyncio.sleep(0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    gate.set()
    assert supplier._loading is not None
    with pytest.raises(ReloadRefused):
        await supplier._loading
    assert "a model is damaged" in caplog.text
