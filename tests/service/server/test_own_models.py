"""What a server that is alone does when its models are loaded anew."""

import asyncio
from typing import Any

import pytest

from service.base.errors import ReloadRefused, StartRefused
from service.base.settings import Settings
from service.server import own_models
from service.server.own_models import OwnModels

pytestmark = pytest.mark.anyio

NOTHING: Any = None


@pytest.mark.parametrize("error", [StartRefused("a model is damaged"), OSError("a model is damaged")])
async def test_the_log_says_why_models_stay_even_if_who_asked_has_left(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    gate = asyncio.Event()

    async def load(_: object) -> None:
        await gate.wait()
        raise error

    monkeypatch.setattr(own_models, "in_daemon_thread", load)
    models = OwnModels(Settings(), NOTHING, NOTHING, NOTHING)
    asked = asyncio.create_task(models.reload())
    await asyncio.sleep(0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    gate.set()
    assert models._loading is not None
    with pytest.raises(ReloadRefused):
        await models._loading
    assert "a model is damaged" in caplog.text
