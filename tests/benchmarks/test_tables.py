from benchmarks.tables import decoder_rows, latency_rows


def cell(engine: str, seconds: list[float], batch: int = 8) -> dict[str, object]:
    named = {"model": "m", "beam_size": 4, "batch": batch, "engine": engine, "settings": "s", "precision": "int8"}
    return {**named, "seconds": seconds, "tokens_per_s": 1.0, "ms_per_sentence": 1.0, "peak_mb": 50.0, "bleu": None}


def test_ratios_compare_engines_of_one_cell_turn_by_turn_and_favour_attend_above_one() -> None:
    slowed_in_between = [cell("attend", [2.0, 2.0, 4.0, 6.0]), cell("ctranslate2", [3.0, 3.0, 6.0])]
    records = [*slowed_in_between, cell("ctranslate2", [1.0], batch=32)]
    ratios = {(row[2], row[3]): row[-1] for row in decoder_rows(records)[1:]}

    assert ratios == {("8", "attend int8"): "", ("8", "ctranslate2 int8"): "**1.50**", ("32", "ctranslate2 int8"): ""}


def test_latency_is_compared_at_the_same_load_only() -> None:
    def at(server: str, share: float, p99_ms: float) -> dict[str, object]:
        load = {
            "server": server,
            "settings": "s",
            "peer": "fastapi",
            "share": share,
            "beam_size": 4,
            "offered_per_s": 100.0,
        }
        measured = {"rate": 99.0, "p50_ms": 1.0, "p95_ms": 2.0, "p99_ms": p99_ms, "all_p99_ms": [p99_ms], "failed": 0}
        return {**load, **measured}

    rows = latency_rows([at("attend", 0.5, 10.0), at("fastapi", 0.5, 25.0), at("fastapi", 0.8, 40.0)])
    assert [row[-1] for row in rows[1:]] == ["", "**2.50**", ""]
    more_came = at("fastapi", 0.5, 25.0) | {"rate": 120.0}
    assert [row[-1] for row in latency_rows([at("attend", 0.5, 10.0), more_came])[1:]] == ["", ""]
