"""README promises: each setting is in its table, with its default."""

from pathlib import Path

from service.settings import Settings

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_every_setting_is_in_the_table_with_its_default_and_meaning() -> None:
    for name, field in Settings.model_fields.items():
        shown = f"`{field.default}`" if field.default not in (None, frozenset()) else "–"  # noqa: RUF001 (a dash)
        assert f"| `ATTEND_{name.upper()}` | {shown} | {field.description} |" in README


def test_the_table_has_no_setting_that_is_gone() -> None:
    documented = {line.split("`")[1] for line in README.splitlines() if line.startswith("| `ATTEND_")}
    assert documented == {f"ATTEND_{name.upper()}" for name in Settings.model_fields}
