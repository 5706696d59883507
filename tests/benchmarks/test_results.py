from pathlib import Path

import pytest

from benchmarks import results


@pytest.fixture(autouse=True)
def _own_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.workspace.WORKSPACE", tmp_path)


def save(**record: object) -> None:
    results.save("decoder", ["engine", "batch"], [record], quick=False)


def test_a_new_measurement_replaces_the_old_one_and_leaves_the_others() -> None:
    save(engine="attend", batch=1, tokens_per_s=10)
    save(engine="attend", batch=8, tokens_per_s=20)
    save(engine="attend", batch=1, tokens_per_s=30)

    found = {record["batch"]: record["tokens_per_s"] for record in results.load("decoder", quick=False)}
    assert found == {1: 30, 8: 20}
    assert results.load("decoder", quick=True) == []


def test_numbers_of_two_machines_never_share_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "describe_machine", lambda: {"processor": "old"})
    save(engine="attend", batch=1, tokens_per_s=10)
    monkeypatch.setattr(results, "describe_machine", lambda: {"processor": "new"})
    save(engine="attend", batch=8, tokens_per_s=20)

    assert [record["batch"] for record in results.load("decoder", quick=False)] == [8]
