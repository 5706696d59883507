"""DeepL's client uses translation memories that the native routes filled."""

from collections.abc import Iterator

import deepl
import httpx
import pytest

TRANSLATORS = {"from": (3, "en", "de")}
SEGMENTS = [{"source": f"The dog number {n} runs.", "target": f"Köter {n}!"} for n in range(3)]


@pytest.fixture
def memory(address: str) -> Iterator[str]:
    """The id of a memory on the service that the client asks."""
    path = f"{address}/memories"
    made = httpx.post(path, json={"name": "Dogs", "source": "en", "target": "de"}).json()["id"]
    httpx.post(f"{path}/{made}/segments", json={"segments": SEGMENTS}).raise_for_status()
    yield made
    httpx.delete(f"{path}/{made}")


def test_a_memory_is_listed_used_and_deleted(client: deepl.DeepLClient, memory: str) -> None:
    (info,) = client.list_translation_memories()
    assert (info.translation_memory_id, info.name, info.segment_count) == (memory, "Dogs", 3)
    assert (info.source_language, info.target_languages) == ("en", ["de"])
    assert vars(client.get_translation_memory(info)) == vars(info)
    answers = client.translate_text(
        ["The dog number 7 runs.", "A dog runs."],
        source_lang="EN",
        target_lang="DE",
        translation_memory=info,
        translation_memory_threshold=80,
    )
    plain = client.translate_text("A dog runs.", source_lang="EN", target_lang="DE")
    assert [str(one) for one in answers] == ["Köter 7!", str(plain)]
    client.delete_translation_memory(info)
    assert client.list_translation_memories() == []
    with pytest.raises(deepl.DeepLException, match="No memory"):
        client.get_translation_memory(info)


def test_segments_are_listed_in_pages(client: deepl.DeepLClient, memory: str) -> None:
    first = client.list_translation_memory_segments(memory, page_size=2)
    rest = client.list_translation_memory_segments(memory, page_size=2, page_cursor=first.next_page_cursor)
    texts = [(one.source_text, one.targets[0].target_text) for page in (first, rest) for one in page]
    assert texts == [(one["source"], one["target"]) for one in SEGMENTS]
    assert (first.segment_count, rest.next_page_cursor) == (3, None)
    (found,) = client.list_translation_memory_segments(memory, filter_text="NUMBER 1")
    assert found.source_text == SEGMENTS[1]["source"]
    with pytest.raises(deepl.DeepLException, match="page_size"):
        client.list_translation_memory_segments(memory, page_size=0)
