"""Rows of each table of the report, from records. The first row names the columns."""

import statistics

from benchmarks.engines import ATTEND
from benchmarks.results import Record

Rows = list[list[str]]

MAX_ANSWERED_SHARE = 1.1
"""Largest share of the offered load at which runs are compared: requests come at random, and one run may get more."""


def decoder_rows(records: list[Record]) -> Rows:
    """Return one row per engine of each cell, with attend's ratio to it."""
    rows = [
        ["model", "beam", "batch", "engine", "settings", "tokens/s", "ms/sentence", "peak MB", "BLEU", "attend's ratio"]
    ]
    seconds = {(*_cell(r), r["engine"]): r["seconds"] for r in records}
    for r in sorted(records, key=lambda r: (r["model"] != "translate-en-fr", *_cell(r)[1:], r["engine"])):
        ours = seconds.get((*_cell(r), ATTEND))
        ratio = "" if ours is None or r["engine"] == ATTEND else f"**{_ratio(r['seconds'], ours):.2f}**"
        measured = [f"{r['tokens_per_s']:,.0f}", f"{r['ms_per_sentence']:.2f}", f"{r['peak_mb']:.0f}", _bleu(r), ratio]
        engine = f"{r['engine']} {r['precision']}"
        rows.append([r["model"], str(r["beam_size"]), str(r["batch"]), engine, r["settings"], *measured])
    return rows


def quality_rows(records: list[Record]) -> Rows:
    rows = [["engine", "precision", "beam", "sentences", "BLEU", "equal", "same alone"]]
    for r in sorted(records, key=lambda r: (r["beam_size"], r["precision"], r["engine"])):
        equal = "" if r["equal"] is None else f"{r['equal']:,}"
        alone = f"{r['equal_alone']:,} of {r['alone']:,}"
        rows.append([r["engine"], r["precision"], str(r["beam_size"]), f"{r['sentences']:,}", _bleu(r), equal, alone])
    return rows


def saturation_rows(records: list[Record]) -> Rows:
    rows = [
        [
            "server",
            "settings",
            "beam",
            "texts per request",
            "texts/s",
            "p50 ms",
            "p95 ms",
            "p99 ms",
            "failed",
            "attend's ratio",
        ]
    ]
    ours = {(r["beam_size"], r["texts"]): r["rates"] for r in records if r["server"] == ATTEND}
    for r in sorted(records, key=lambda r: (r["beam_size"], r["texts"], r["server"])):
        our_rate = ours.get((r["beam_size"], r["texts"]))
        ratio = "" if our_rate is None or r["server"] == ATTEND else f"**{_ratio(our_rate, r['rates']):.2f}**"
        counts = [r["server"], r["settings"], str(r["beam_size"]), str(r["texts"]), f"{r['texts_per_s']:,.0f}"]
        rows.append([*counts, *_percentiles(r), str(r["failed"]), ratio])
    return rows


def latency_rows(records: list[Record]) -> Rows:
    rows = [
        [
            "load",
            "beam",
            "offered/s",
            "server",
            "settings",
            "answered/s",
            "p50 ms",
            "p95 ms",
            "p99 ms",
            "failed",
            "attend's ratio (p99)",
        ]
    ]
    ours = {_load(r): r["all_p99_ms"] for r in records if r["server"] == ATTEND}
    uneven = {_load(r) for r in records if r["rate"] > MAX_ANSWERED_SHARE * r["offered_per_s"]}
    for r in sorted(records, key=lambda r: (*_load(r), r["server"])):
        our_latency = ours.get(_load(r)) if r["server"] != ATTEND and _load(r) not in uneven else None
        ratio = "" if our_latency is None else f"**{_ratio(r['all_p99_ms'], our_latency):.2f}**"
        load = [f"{r['share']:.0%} of {r['peer']}", str(r["beam_size"]), f"{r['offered_per_s']:.0f}", r["server"]]
        rows.append([*load, r["settings"], f"{r['rate']:.0f}", *_percentiles(r), str(r["failed"]), ratio])
    return rows


def survival_rows(records: list[Record]) -> Rows:
    rows = [["beam", "engine, texts/s", "HTTP, texts/s", "left"]]
    for r in sorted(records, key=lambda r: r["beam_size"]):
        engine, http = r["engine_texts_per_s"], r["http_texts_per_s"]
        rows.append([str(r["beam_size"]), f"{engine:,.0f}", f"{http:,.0f}", f"**{http / engine:.0%}**"])
    return rows


def agreement_rows(records: list[Record]) -> Rows:
    ordered = sorted(records, key=lambda r: (r["beam_size"], r["server"]))
    header = ["server", "beam", "texts", "same tokens", "same translation as FastAPI's", "BLEU"]
    counts = ("beam_size", "texts", "tokenized_alike", "equal")
    return [header, *([r["server"], *(str(r[count]) for count in counts), _bleu(r)] for r in ordered)]


def attention_rows(records: list[Record]) -> Rows:
    rows = [["asked for", "alone, p50 ms", "others, requests/s", "others, share", "others, p99 ms", "failed"]]
    undisturbed = next((r["others_per_s"] for r in records if r["wish"] == "nothing"), None)
    for r in sorted(records, key=lambda r: r["alone_p50_ms"]):
        share = "" if undisturbed is None else f"**{r['others_per_s'] / undisturbed:.1%}**"
        numbers = [f"{r['alone_p50_ms']:.1f}", f"{r['others_per_s']:.0f}", share, f"{r['others_p99_ms']:.1f}"]
        rows.append([r["wish"], *numbers, str(r["failed"])])
    return rows


def classifier_rows(records: list[Record]) -> Rows:
    """Return one row per engine, with attend's ratio to it."""
    ours = next((r["seconds"] for r in records if r["engine"] == ATTEND), None)
    rows = [["engine", "texts/s", "attend's ratio"]]
    for r in sorted(records, key=lambda r: -r["texts_per_s"]):
        ratio = "" if ours is None or r["engine"] == ATTEND else f"**{_ratio(r['seconds'], ours):.2f}**"
        rows.append([r["engine"], f"{r['texts_per_s']:,.1f}", ratio])
    return rows


def _ratio(more: list[float], less: list[float]) -> float:
    """Return the median ratio over the turns of both: what slows the machine for a while slows both."""
    return statistics.median(a / b for a, b in zip(more, less, strict=False))


def _cell(record: Record) -> tuple[str, int, int]:
    return record["model"], record["beam_size"], record["batch"]


def _load(record: Record) -> tuple[str, int, float]:
    return record["peer"], record["beam_size"], record["share"]


def _percentiles(record: Record) -> list[str]:
    return [f"{record[name]:.1f}" for name in ("p50_ms", "p95_ms", "p99_ms")]


def _bleu(record: Record) -> str:
    bleu = record.get("bleu")
    return "" if bleu is None else f"{bleu:.1f}"
