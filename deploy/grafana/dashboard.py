"""The dashboard for Grafana, which `python -m deploy.grafana.dashboard` writes into attend.json.

A panel has a title, a sentence on what it tells, and queries with the labels of their lines. tests/test_dashboard.py
asks a Prometheus every query.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from grafana_foundation_sdk.builders import dashboard, prometheus, stat, table, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DataSourceRef,
    VariableRefresh,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

FILE = Path(__file__).with_name("attend.json")

SOURCE = DataSourceRef(type_val="prometheus", uid="${source}")

OURS = 'instance=~"$instance"'
"""The servers that the reader has chosen."""

HEIGHT, THIRD, WHOLE = 8, 8, 24


class Query(NamedTuple):
    expression: str
    label: str = ""


class Chart(NamedTuple):
    """Lines over time."""

    title: str
    about: str
    unit: str
    queries: Sequence[Query]


def rate(counter: str, by: str = "", where: str = "") -> str:
    """Return the query of a counter's rate."""
    grouped = f" by ({by})" if by else ""
    return f"sum{grouped} (rate({counter}{{{', '.join(filter(None, [OURS, where]))}}}[$__rate_interval]))"


def quantile(share: float, histogram: str, by: str, where: str = "") -> str:
    """Return the query of the value that this share of a histogram's observations stays below."""
    return f"histogram_quantile({share}, {rate(f'{histogram}_bucket', f'{by}, le', where)})"


def gauge(name: str, by: str) -> str:
    """Return the query of a gauge's sum."""
    return f"sum by ({by}) ({name}{{{OURS}}})"


FAILED, ERRORS, SOURCES = 'status=~"5.."', 'status=~"[45].."', 'side="source"'
FOUND = 'result!="miss"'

NOW = {
    "ready": ("servers that are ready", "none", f"sum(attend_ready{{{OURS}}})"),
    "requests": ("requests a second", "reqps", rate("attend_requests_total")),
    "errors": (
        "requests that failed",
        "percentunit",
        f"{rate('attend_requests_total', where=FAILED)} / ({rate('attend_requests_total')} > 0) or vector(0)",
    ),
    "waiting": ("sequences that wait", "none", f"sum(attend_waiting{{{OURS}}})"),
    "characters": ("characters translated a second", "none", rate("attend_characters_total")),
    "memory": ("memory", "bytes", f"sum(attend_memory_bytes{{{OURS}}})"),
}

ROWS = {
    "Requests": [
        Chart(
            "Requests by route",
            "Answered requests a second.",
            "reqps",
            [Query(rate("attend_requests_total", "route") + " > 0", "{{route}}")],
        ),
        Chart(
            "Requests by dialect",
            "Answered requests a second, by the interface that clients speak.",
            "reqps",
            [Query(rate("attend_requests_total", "dialect") + " > 0", "{{dialect}}")],
        ),
        Chart(
            "Errors",
            "Answers a second with a status of 400 or more; 499: the client left.",
            "reqps",
            [Query(rate("attend_requests_total", "route, status", ERRORS) + " > 0", "{{status}} {{route}}")],
        ),
        Chart(
            "Latency by route",
            "95 % of the requests of a route take at most as long.",
            "s",
            [Query(quantile(0.95, "attend_request_seconds", "route") + " >= 0", "{{route}}")],
        ),
        Chart(
            "Latency by dialect",
            "95 % of the requests of a dialect take at most as long.",
            "s",
            [Query(quantile(0.95, "attend_request_seconds", "dialect") + " >= 0", "{{dialect}}")],
        ),
        Chart(
            "Latency of all requests",
            "Half of all requests, 95 %, and 99 %.",
            "s",
            [
                Query(f"histogram_quantile({share}, {rate('attend_request_seconds_bucket', 'le')})", f"{share:.0%}")
                for share in (0.5, 0.95, 0.99)
            ],
        ),
    ],
    "Queue": [
        Chart(
            "Waiting and running",
            "Sequences now. A full queue answers 503.",
            "none",
            [Query(gauge(f"attend_{state}", "task"), f"{{{{task}}}} {state}") for state in ("waiting", "running")],
        ),
        Chart(
            "Time in the queue",
            "95 % of the requests wait at most as long: this grows before anything else does.",
            "s",
            [Query(quantile(0.95, "attend_queue_seconds", "task") + " >= 0", "{{task}}")],
        ),
        Chart(
            "Refused and given up",
            "Requests a second that got no answer.",
            "reqps",
            [
                Query(rate("attend_rejected_total", "task, reason"), "{{task}} refused: {{reason}}"),
                Query(rate("attend_cancelled_total", "task, reason"), "{{task}} given up: {{reason}}"),
            ],
        ),
    ],
    "Work": [
        Chart(
            "Tokens",
            "Tokens read (source) and written (target) a second.",
            "none",
            [Query(rate("attend_tokens_total", "task, side"), "{{task}} {{side}}")],
        ),
        Chart(
            "Rows of a step",
            "Rows of one forward pass, on average: how many sequences share it.",
            "none",
            [
                Query(
                    f"{rate('attend_batch_rows_sum', 'task')} / {rate('attend_batch_rows_count', 'task')} >= 0",
                    "{{task}}",
                )
            ],
        ),
        Chart(
            "Time of a forward pass",
            "95 % of the passes take at most as long.",
            "s",
            [Query(quantile(0.95, "attend_inference_seconds", "task, phase") + " >= 0", "{{task}} {{phase}}")],
        ),
        Chart(
            "Padding",
            "Share of padding in what encoders read.",
            "percentunit",
            [
                Query(
                    f"{rate('attend_padding_tokens_total', 'task')} / ({rate('attend_padding_tokens_total', 'task')} + "
                    f"{rate('attend_tokens_total', 'task', SOURCES)}) >= 0",
                    "{{task}}",
                )
            ],
        ),
        Chart(
            "Steps",
            "Decoder steps a second.",
            "none",
            [Query(rate("attend_decode_steps_total", "instance"), "{{instance}}")],
        ),
        Chart(
            "How full the models are",
            "Sequences that run, by how many can at once; a translation takes as many places as its beam is wide.",
            "percentunit",
            [Query(f"{gauge('attend_running', 'task')} / {gauge('attend_rows', 'task')}", "{{task}}")],
        ),
    ],
    "Cache": [
        Chart(
            "Sentences in the cache",
            "Share of the sentences that had an answer (hit), or were being translated for another request (joined).",
            "percentunit",
            [
                Query(
                    f"{rate('attend_cache_sentences_total', 'result', FOUND)} / on() group_left() "
                    f"({rate('attend_cache_sentences_total')} > 0)",
                    "{{result}}",
                )
            ],
        ),
        Chart(
            "Memory of the cache",
            "Answers of all servers together.",
            "bytes",
            [Query(gauge("attend_cache_bytes", "instance"), "{{instance}}")],
        ),
        Chart(
            "Evictions",
            "Answers a second that made room for others. Many of them beside few hits: the cache is too small.",
            "none",
            [Query(rate("attend_cache_evictions_total", "instance"), "{{instance}}")],
        ),
    ],
    "Processes": [
        Chart(
            "Memory",
            "All processes of a service; shared pages count once.",
            "bytes",
            [Query(gauge("attend_memory_bytes", "instance"), "{{instance}}")],
        ),
        Chart(
            "Connections",
            "Open ones, and those that the service closed a second.",
            "none",
            [
                Query(gauge("attend_connections", "instance"), "{{instance}}"),
                Query(rate("attend_connections_closed_total", "reason"), "closed: {{reason}}"),
            ],
        ),
        Chart(
            "Workers that ended",
            "Workers that were replaced in an hour, by signal or status.",
            "none",
            [Query(f"sum by (how) (increase(attend_workers_ended_total{{{OURS}}}[1h]))", "{{how}}")],
        ),
        Chart(
            "Models that take requests",
            "1 where every server has the model ready.",
            "none",
            [Query(f"min by (model) (attend_model_ready{{{OURS}}})", "{{model}}")],
        ),
        Chart(
            "Models in memory",
            "Servers that have the model in memory.",
            "none",
            [Query(f"sum by (model) (max by (model, instance) (attend_model_loaded{{{OURS}}}))", "{{model}}")],
        ),
        Chart(
            "Failures of database and rate store",
            "Reads and writes that the database could not do, and requests whose rate was counted without the store.",
            "none",
            [
                Query(rate("attend_database_failures_total"), "database"),
                Query(rate("attend_rates_without_store_total"), "rate store"),
            ],
        ),
        Chart(
            "Changed files",
            "1 where the files of a model have changed since it was read.",
            "none",
            [Query(f"max by (model) (attend_model_files_changed{{{OURS}}})", "{{model}}")],
        ),
    ],
}

TABLES = {
    "Models": ("model, task, precision, provider", "attend_model_info"),
    "Versions": ("instance, version", "attend_build_info"),
}


def build() -> str:
    """Return the dashboard as JSON."""
    board = (
        dashboard.Dashboard("attend")
        .uid("attend")
        .tags(["attend"])
        .refresh("10s")
        .time("now-1h", "now")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .with_variable(dashboard.DatasourceVariable("source").label("Prometheus").type("prometheus"))
        .with_variable(
            dashboard.QueryVariable("instance")
            .label("Instance")
            .datasource(SOURCE)
            .query("label_values(attend_build_info, instance)")
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
            .multi(True)
            .include_all(True)
            .all_value(".*")
        )
    )
    for title, unit, expression in NOW.values():
        panel = stat.Panel().title(title).unit(unit).datasource(SOURCE).height(4).span(WHOLE // len(NOW))
        board.with_panel(panel.with_target(_target(expression)))
    for row, charts in ROWS.items():
        board.with_row(dashboard.Row(row))
        for chart in charts:
            board.with_panel(_panel(chart))
    board.with_row(dashboard.Row("Models and versions"))
    for title, (by, name) in TABLES.items():
        target = _target(f"count by ({by}) ({name}{{{OURS}}})").instant().format(PromQueryFormat.TABLE)
        board.with_panel(
            table.Panel().title(title).datasource(SOURCE).height(HEIGHT).span(WHOLE // 2).with_target(target)
        )
    return json.dumps(board.build(), cls=JSONEncoder, indent=1, sort_keys=True) + "\n"


def _panel(chart: Chart) -> timeseries.Panel:
    panel = timeseries.Panel().title(chart.title).description(chart.about).unit(chart.unit).min(0)
    panel.datasource(SOURCE).height(HEIGHT).span(THIRD)
    for number, query in enumerate(chart.queries):
        panel.with_target(_target(query.expression).legend_format(query.label).ref_id("ABC"[number]))
    return panel


def _target(expression: str) -> prometheus.Dataquery:
    return prometheus.Dataquery().datasource(SOURCE).expr(expression)


if __name__ == "__main__":
    FILE.write_text(build(), encoding="utf-8")
