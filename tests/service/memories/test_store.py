import pytest

from service.access.ownership import ANYBODY, Requester
from service.base.errors import InvalidMemory, LimitExceeded, MemoryMismatch, NotOwner, UnknownMemory
from service.memories import store
from service.memories.recall import Recall, Recalled
from service.memories.store import Memories, Memory, Segment

pytestmark = pytest.mark.anyio

PUMP = Segment("The pump runs at full speed.", "La pompe tourne à plein régime.")


@pytest.fixture
def memory(memories: Memories) -> Memory:
    made = memories.create(ANYBODY, "Manuals", "en", "fr")
    memories.put(ANYBODY, made.id, [PUMP, Segment("Open {name}.", "Ouvrez {name}."), Segment("Stop", "Arrêt")])
    return memories.get(ANYBODY, made.id)


async def recalled(memories: Memories, ids: str, text: str, threshold: float = 75) -> Recalled:
    recall = await Recall.of(memories, ANYBODY, ids, ("en", "fr"), threshold, exact_only=False)
    return (await recall.find([text]))[text]


async def test_the_same_text_is_found_whatever_its_white_space_and_its_form_in_unicode(
    memories: Memories, memory: Memory
) -> None:
    memories.put(ANYBODY, memory.id, [Segment("Café\u0301  noir", "x"), Segment("Re\u0301sume\u0301 here", "CV ici")])
    for text in (PUMP.source, f" {PUMP.source.replace(' ', chr(0xA0))}\n"):
        found = await recalled(memories, memory.id, text)
        assert found.used is not None
        assert (found.used.target, found.used.similarity, found.used.memory) == (PUMP.target, 100, memory.id)
        assert found.matches == []
    found = await recalled(memories, memory.id, "Résumé here")
    assert found.used is not None
    assert found.used.target == "CV ici"
    assert (await recalled(memories, memory.id, PUMP.source.upper())).used is None


async def test_a_text_with_other_kept_spans_is_found(memories: Memories, memory: Memory) -> None:
    found = await recalled(memories, memory.id, "Open {title}.")
    assert found.used is not None
    assert found.used.target == "Ouvrez {title}."


async def test_similar_texts_are_suggested_the_best_first(memories: Memories, memory: Memory) -> None:
    memories.put(
        ANYBODY, memory.id, [Segment("The pump runs at half speed.", "b"), Segment("Quite another text.", "c")]
    )
    found = await recalled(memories, memory.id, "The pumps run at full speed.")
    assert found.used is None
    assert [one.target for one in found.matches] == [PUMP.target, "b"]
    assert 100 > found.matches[0].similarity > found.matches[1].similarity >= 75
    assert (await recalled(memories, memory.id, "The pumps run at full speed.", threshold=99)).matches == []


async def test_no_other_memory_is_searched_and_the_first_named_comes_first(memories: Memories, memory: Memory) -> None:
    other = memories.create(ANYBODY, "Other", "en", "fr")
    assert await recalled(memories, other.id, PUMP.source) == Recalled(None, [])
    memories.put(ANYBODY, other.id, [Segment(PUMP.source, "other")])
    for first, last, target in ((memory, other, PUMP.target), (other, memory, "other")):
        found = await recalled(memories, f"{first.id},{last.id}", PUMP.source)
        assert found.used is not None
        assert found.used.target == target


async def test_a_segment_is_replaced_and_deleted_by_its_source(memories: Memories, memory: Memory) -> None:
    skipped = memories.put(
        ANYBODY, memory.id, [Segment(f"{PUMP.source} ", "new", author="me"), Segment(" ", "x"), Segment("x", "")]
    )
    assert (skipped, memories.get(ANYBODY, memory.id).n_segments) == (2, 3)
    first, *_ = memories.segments(ANYBODY, memory.id)
    assert (first.target, first.author) == ("new", "me")
    memories.delete_segment(ANYBODY, memory.id, PUMP.source)
    assert memories.get(ANYBODY, memory.id).n_segments == 2
    assert await recalled(memories, memory.id, PUMP.source) == Recalled(None, [])
    assert await recalled(memories, memory.id, "The pump runs at full speed") == Recalled(None, [])
    with pytest.raises(UnknownMemory):
        memories.delete_segment(ANYBODY, memory.id, PUMP.source)
    memories.put(ANYBODY, memory.id, [PUMP])
    assert (await recalled(memories, memory.id, "The pump runs at full speed")).matches


async def test_what_nobody_reviewed_is_not_used(memories: Memories, memory: Memory) -> None:
    text = "Nobody has read this yet."
    memories.put(ANYBODY, memory.id, [Segment(text, "b", is_reviewed=False)])
    assert await recalled(memories, memory.id, text) == Recalled(None, [])
    assert [one.source for one in memories.segments(ANYBODY, memory.id, reviewed=False)] == [text]
    memories.put(ANYBODY, memory.id, [Segment(text, "b")])
    assert (await recalled(memories, memory.id, text)).used is not None


async def test_a_memory_is_deleted_with_its_segments(
    memories: Memories, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "BATCH", 2)
    await memories.delete(ANYBODY, memory.id)
    with pytest.raises(UnknownMemory, match=memory.id):
        memories.get(ANYBODY, memory.id)
    assert memories.all(ANYBODY) == []
    again = memories.create(ANYBODY, "Again", "en", "fr")
    assert (await recalled(memories, again.id, "The pump runs at full speed")).matches == []


def test_segments_are_listed_in_pages_and_by_what_they_have(memories: Memories, memory: Memory) -> None:
    first, second, third = memories.segments(ANYBODY, memory.id)
    assert memories.segments(ANYBODY, memory.id, after=first.number, limit=1) == [second]
    assert memories.segments(ANYBODY, memory.id, text="ARR") + memories.segments(ANYBODY, memory.id, text="%") == [
        third
    ]


async def test_a_memory_of_other_languages_is_refused(memories: Memories, memory: Memory) -> None:
    for source, target in (("fr", "en"), ("en", "de")):
        with pytest.raises(MemoryMismatch, match="is from en to fr"):
            await Recall.of(memories, ANYBODY, memory.id, (source, target), 75, exact_only=False)
    await Recall.of(memories, ANYBODY, memory.id, ("en-GB", "fr-CA"), 75, exact_only=False)
    with pytest.raises(InvalidMemory, match="two languages"):
        memories.create(ANYBODY, "x", "en", "en-GB")


async def test_memories_have_limits(memories: Memories, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LimitExceeded, match="names 6 memories"):
        await Recall.of(memories, ANYBODY, ",".join("abcdef"), ("en", "fr"), 75, exact_only=False)
    monkeypatch.setattr(store, "MAX_SEGMENTS", 4)
    with pytest.raises(LimitExceeded, match="more than 4 segments"):
        memories.put(ANYBODY, memory.id, [Segment("a", "b"), Segment("c", "d")])
    assert memories.get(ANYBODY, memory.id).n_segments == 3, "nothing of it is stored"
    monkeypatch.setattr(store, "MAX_MEMORIES", 1)
    with pytest.raises(LimitExceeded, match="1 memories"):
        memories.create(ANYBODY, "x", "en", "fr")


async def test_what_a_key_stored_is_read_and_changed_by_whom_it_is_shared_with(memories: Memories) -> None:
    own, other = Requester("own"), Requester("other")
    reader, writer = Requester("reader", {"own": "read"}), Requester("writer", {"own": "write"})
    memory = memories.create(own, "Own", "en", "fr")
    for requester in (own, writer, ANYBODY):
        memories.put(requester, memory.id, [PUMP])
        assert memories.all(requester) == [memories.get(requester, memory.id)]
    assert memories.segments(reader, memory.id)
    with pytest.raises(NotOwner, match="read only"):
        memories.put(reader, memory.id, [PUMP])
    for call in (memories.get, memories.segments, memories.delete_segment):
        with pytest.raises(UnknownMemory):
            call(other, memory.id, *([""] if call == memories.delete_segment else []))
    with pytest.raises(UnknownMemory):
        await Recall.of(memories, other, memory.id, ("en", "fr"), 75, exact_only=False)
    assert memories.all(other) == []


async def test_a_long_text_of_few_words_is_looked_up(memories: Memories, memory: Memory) -> None:
    assert await recalled(memories, memory.id, "".join(map(chr, range(0x100, 0x400)))) == Recalled(None, [])
    assert await recalled(memories, memory.id, "".join(f"!{chr(n)}" for n in range(0x2200, 0x2400))) == Recalled(
        None, []
    )
