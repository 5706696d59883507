"""Writes the results of `python -m benchmarks.gpu all` as tables in docs/gpu.md."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.gpu.everything import Line
from benchmarks.page import markdown

PLACE = re.compile(r"(?<=<!-- measured: written by make gpu -->\n).*?(?=<!-- end -->)", re.DOTALL)
ENGINES = ("attend", "ctranslate2")
NONE = "–"  # noqa: RUF001  A dash.


def write(lines: list[Line], page: Path, out: Path) -> None:
    """Write a page to `out`, with these results in it."""
    text = page.read_text(encoding="utf-8")
    out.write_text(PLACE.sub(lambda _: "\n" + report(lines) + "\n\n", text), encoding="utf-8")


def report(lines: list[Line]) -> str:
    """Return machine, tables, and how the parts ended."""

    def of(part: str) -> list[Line]:
        return [line for line in lines if line["part"] == part]

    tables: list[tuple[str, Callable[[list[Line]], list[list[str]]], list[Line]]] = [
        ("Nodes of each graph, and those that do not run on the device", _graphs, of("proof")),
        ("Answers that are the same as those of float32 on the CPU, and as alone", _answers, of("proof")),
        ("Target tokens a second, without HTTP", _speed, of("speed")),
        ("The same with other constants of the engine, without a worker process", _constants, of("constants")),
        ("Over HTTP, clients on the same machine", _loads, of("http")),
        ("Mixed requests of every route; each answer is compared with the first to its request", _soak, of("soak")),
        ("Milliseconds of one decoder step, and of one encoder pass", _steps, of("steps")),
        ("Runs of sessions, copies and shapes", _counts, of("counts")),
    ]
    sections = [_machine(of("machine"))]
    for title, rows_of, found in tables:
        header, *rows = rows_of(found)
        if rows:
            sections.append(f"{title}:\n\n{markdown([header, *rows])}")
    refused = [line for line in of("http") if line.get("status", 200) != 200]
    sections += [f"`{line['path']}` was answered with {line['status']}: `{line['answer']}`" for line in refused]
    sections.append(f"Parts:\n\n{markdown(_parts(of('ended')))}")
    return "\n\n".join(sections)


def _machine(lines: list[Line]) -> str:
    (machine,) = lines
    versions = [f"{name} {value}" for name, value in machine.items() if name.endswith(" version")]
    return (
        f"Measured on {machine['date']} at commit {machine['commit']} by `python -m benchmarks.gpu all` with "
        f"`PROVIDER={machine['provider']}`: {machine['device']}, {machine['cores of this process']} cores of "
        f"{machine['processor']}; {', '.join(versions).replace(' version', '')}."
    )


def _graphs(lines: list[Line]) -> list[list[str]]:
    of_graphs = [line for line in lines if "graph" in line]
    rows = [[line["graph"], str(line["nodes"]), ", ".join(line["elsewhere"]) or "none"] for line in of_graphs]
    return [["graph", "nodes", "elsewhere"], *rows]


def _answers(lines: list[Line]) -> list[list[str]]:
    of_engines = [line for line in lines if "engine" in line]
    rows = [[line["engine"], *_told(line, ("beam_size", "as_float32_on_cpu", "as_alone"))] for line in of_engines]
    return [["engine", "beam", "as float32", "as alone"], *rows]


def _speed(lines: list[Line]) -> list[list[str]]:
    rows = [["model", "beam", "batch", *ENGINES, "attend / ctranslate2"]]
    counts: dict[tuple[str, int, int], dict[str, int]] = {}
    for line in lines:
        cell = line["model"], line["beam_size"], line["batch"]
        counts.setdefault(cell, {})[line["engine"]] = line["tokens_per_s"]
    for (model, beam_size, batch), speeds in sorted(counts.items(), key=_shipped_first):
        has_both = "attend" in speeds and "ctranslate2" in speeds
        ratio = f"**{speeds['attend'] / speeds['ctranslate2']:.2f}**" if has_both else NONE
        told = [f"{speeds[engine]:,}" if engine in speeds else NONE for engine in ENGINES]
        rows.append([model, str(beam_size), str(batch), *told, ratio])
    return rows


def _constants(lines: list[Line]) -> list[list[str]]:
    names = ("newcomers_share", "steps_waited", "size_factor", "beam_size", "batch", "tokens_per_s")
    return [["newcomers' share", "steps waited", "size factor", "beam", "batch", "tokens/s"]] + [
        _told(line, names) for line in lines
    ]


def _shipped_first(item: tuple[tuple[str, int, int], object]) -> tuple[bool, str, int, int]:
    model, beam_size, batch = item[0]
    return model.startswith("random"), model, beam_size, batch


def _loads(lines: list[Line]) -> list[list[str]]:
    rows = [["servers", "connections", "texts in a request", "texts/s", "p50 ms", "p99 ms", "refused"]]
    for line in lines:
        if "connections" in line:
            numbers = _told(line, ("connections", "texts", "texts_per_s", "p50_ms", "p99_ms", "refused"))
            rows.append([str(line.get("servers", "default")), *numbers])
    return rows


def _soak(lines: list[Line]) -> list[list[str]]:
    rows = [
        [
            "seconds",
            "clients",
            "answers",
            "no answer",
            "another answer",
            "MB after a sixth, at the end",
            "on the device",
        ]
    ]
    for line in lines:
        numbers = _told(line, ("seconds", "clients", "answers", "failed", "different"))
        memory = f"{line['mb_before']:,}, {line['mb_after']:,}"
        on_device = f"{line['device_mb_before']:,}, {line['device_mb_after']:,}" if "device_mb_before" in line else NONE
        rows.append([*numbers, memory, on_device])
    return rows


def _steps(lines: list[Line]) -> list[list[str]]:
    rows = [["model", "CUDA graphs", "rows", "step", "encoder", "encoder, first"]]
    for line in lines:
        captures = "yes" if line["captures"] else "no"
        rows.append([line["model"], captures, *_told(line, ("rows", "step_ms", "encode_ms", "encode_first_ms"))])
    return rows


def _counts(lines: list[Line]) -> list[list[str]]:
    names = ("beam_size", "batch", "sentences", "per_sentence", "copy", "shapes", "shapes_beforehand")
    rows = [["engine", "beam", "batch", "sentences", "runs a sentence", "copies", "shapes", "of which beforehand"]]
    return [*rows, *([line["engine"], *_told(line, names)] for line in lines)]


def _parts(lines: list[Line]) -> list[list[str]]:
    return [["part", "seconds", "how it ended"], *([line["name"], f"{line['seconds']}", line["how"]] for line in lines)]


def _told(line: Line, names: Iterable[str]) -> list[str]:
    """Return the named values of a line, as text."""
    values = [line.get(name, NONE) for name in names]
    return [value if isinstance(value, str) else f"{value:,}" for value in values]
