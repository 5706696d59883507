from pathlib import Path

from benchmarks.page import fill, measured, written
from benchmarks.workspace import ROOT

TEMPLATE = ROOT / "benchmarks" / "report.md"


def test_a_page_tells_what_was_put_into_each_place_of_its_template(tmp_path: Path) -> None:
    template, page = tmp_path / "template.md", tmp_path / "page.md"
    template.write_text("# Speed (x | y)\n\n{{decoder}}\n\n## More\n\n{{growth}}\n", encoding="utf-8")
    places = {"decoder": "| a |\n| --- |\n| 1.5 |", "growth": "Not measured yet."}
    fill(template, places, page)
    assert written(template, page) == places


def test_links_lead_where_they_lead_in_the_template(tmp_path: Path) -> None:
    template, page = tmp_path / "benchmarks" / "template.md", tmp_path / "docs" / "page.md"
    for file in (template, page):
        file.parent.mkdir()
    template.write_text("[a](../docs/gpu.md#speed) [b](http://x/y.md) [c](#d) {{part}}\n", encoding="utf-8")
    fill(template, {"part": "[e](of-page.md)"}, page)
    assert page.read_text(encoding="utf-8") == "[a](gpu.md#speed) [b](http://x/y.md) [c](#d) [e](of-page.md)\n"
    assert written(template, page) == {"part": "[e](of-page.md)"}


def test_a_page_of_another_template_or_none_tells_nothing(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    assert written(TEMPLATE, page) == {}
    page.write_text("# Benchmarks\n", encoding="utf-8")
    assert written(TEMPLATE, page) == {}


def test_the_report_in_the_repository_is_of_the_template() -> None:
    found = written(TEMPLATE, ROOT / "docs" / "benchmarks.md")
    assert "random-6-6" in found["decoder_random"]
    assert found["growth"].startswith("![")


def test_what_was_measured_tells_when_and_where() -> None:
    record = {"date": "2026-01-02", "commit": "abc", "command": "python -m benchmarks decoder"}
    assert measured("| 1 |", [record], {"processor": "Some", "cores of this process": "2"}) == (
        "| 1 |\n\nMeasured 2026-01-02 at abc by `python -m benchmarks decoder` on 2 cores of Some."
    )
