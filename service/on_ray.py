"""attend on Ray Serve: `serve run service.on_ray:app`, or deploy/ray/serve.yaml on a cluster.

Each replica is a whole attend, with a loader and workers of its own, in which requests share steps. Ray starts
replicas, replaces them, and decides how many there are.
"""

import os
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from typing import Any

import ray
from fastapi import FastAPI
from ray import serve
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from service.access.addresses import trusted_hosts
from service.access.keys import Keys
from service.base.configuration import announce, read_settings
from service.base.errors import ReloadRefused
from service.base.metrics import Metrics
from service.base.settings import Settings
from service.front.assembly import load_catalog
from service.front.serving import Serving, proven
from service.front.suppliers import LoadingSupplier
from service.server.app import create_app
from service.server.tracing import close_traces, open_traces
from service.storage.data_directory import with_data_directory
from service.storage.database import check_database

# Ray reports its usage to its makers unless this is 0. `serve run` imports this module before it starts Ray.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

MAX_ONGOING_REQUESTS = 2 * Settings.model_fields["max_waiting"].default
"""More than a replica holds, which refuses in its own words (`ATTEND_MAX_WAITING`). Ray's default starves its steps."""

SHUTDOWN_S = Settings.model_fields["drain_timeout_s"].default + 10


class Attend:
    """A replica."""

    async def __serve_build_asgi_app__(self) -> ASGIApp:
        """Return the application. Ray runs its lifespan, which ends when every model has done a forward pass."""
        self.resources = ExitStack()
        settings = self.resources.enter_context(with_data_directory(settings_of_replica()))
        settings.log.configure()
        announce(settings)
        check_database(settings)
        metrics = Metrics()
        self.serving = serving = Serving(settings.probe_interval_s)
        traces = open_traces()
        app = create_app(settings, serving, metrics, Keys(settings), refuse_reload, traces=traces)
        supplier = LoadingSupplier(partial(load_catalog, settings, metrics), serving.replace, None)
        serve_http = app.router.lifespan_context

        @asynccontextmanager
        async def lifespan(app: FastAPI) -> AsyncIterator[None]:
            async with serve_http(app):
                await supplier.run()
                await proven(serving.catalog)
                yield
            if traces is not None:
                await close_traces(traces)
            self.resources.close()

        app.router.lifespan_context = lifespan
        app.add_api_route("/metrics/targets", metrics_targets, include_in_schema=False)
        app.add_middleware(OneRequestId)
        if settings.trusted_proxies is not None:
            app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=trusted_hosts(settings.trusted_proxies))
        return app

    async def check_health(self) -> None:
        """Raise RuntimeError if a model cannot compute: Ray then replaces this replica, unless it ends anyway."""
        if not self.serving.draining and (reason := self.serving.unready_reason()) is not None:
            raise RuntimeError(reason)

    async def record_autoscaling_stats(self) -> dict[str, float]:
        """Return how many sequences wait and run."""
        states = self.serving.states()
        return {"sequences": float(sum(state.waiting + state.running for state in states))}


class SequencesPolicy:
    """Decides how many replicas there are, by the sequences that wait and run: a request may have hundreds of them.

    Args:
        target_sequences: how many a replica should have. On a CPU steps of about this many rows are fastest.
    """

    def __init__(self, target_sequences: float = 24) -> None:
        self._target = target_sequences

    def __call__(self, context: Any) -> tuple[float, dict[str, Any]]:
        counts = context.aggregated_metrics.get("sequences") or {}
        return (sum(counts.values()) / self._target if counts else context.target_num_replicas), {}


class OneRequestId:
    """Leaves `X-Request-ID` to Ray, which gives each request one and adds it to the answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_without_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [(name, value) for name, value in message["headers"] if name != b"x-request-id"]
            await send(message)

        await self._app(scope, receive, send_without_id)


def settings_of_replica() -> Settings:
    """Return the settings of the environment; by default with as many threads as Ray has assigned cores."""
    settings = read_settings()
    cores = int(ray.get_runtime_context().get_assigned_resources().get("CPU", 1))
    return settings if settings.threads else settings.model_copy(update={"threads": max(1, cores)})


async def refuse_reload() -> None:
    """Raise ReloadRefused: one replica would have other models than the others."""
    raise ReloadRefused("On Ray models are not reloaded: deploy the application anew, which replaces its replicas")


async def metrics_targets() -> list[dict[str, Any]]:
    """Tell Prometheus where each replica answers. Without HAProxy replicas have no address of their own."""
    if os.environ.get("RAY_SERVE_ENABLE_HA_PROXY") != "1":
        return []
    controller = serve.context._get_global_client()._controller  # what Ray has in public names proxies alone
    app_name = serve.get_replica_context().app_name
    groups = await controller.get_target_groups.remote(app_name, from_proxy_manager=True)
    return [
        {
            "targets": [f"{target.ip}:{target.port}" for target in group.targets],
            "labels": {"__metrics_path__": f"{group.route_prefix.rstrip('/')}/metrics"},
        }
        for group in groups
    ]


deployment = serve.deployment(
    name="attend",
    max_ongoing_requests=MAX_ONGOING_REQUESTS,
    health_check_period_s=10,
    health_check_timeout_s=60,
    graceful_shutdown_timeout_s=SHUTDOWN_S,
)(serve.ingress()(Attend))
app = deployment.bind()
