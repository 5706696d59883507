"""What a trace tells of an answer: task, model, tokens. Never a text."""

from collections.abc import Iterator
from typing import Any

from service.schemas.answers import (
    ClassifyResponse,
    DetectResponse,
    EmbedResponse,
    RerankResponse,
    TranslateResponse,
    Translation,
)

Answer = TranslateResponse | DetectResponse | ClassifyResponse | RerankResponse | EmbedResponse

TASKS: dict[type[Answer], str] = {
    TranslateResponse: "translation",
    DetectResponse: "detection",
    ClassifyResponse: "classification",
    RerankResponse: "reranking",
    EmbedResponse: "embedding",
}


def attributes_of(answer: Answer) -> dict[str, Any]:
    """Return the attributes of an answer, those of generative models by the names of OpenTelemetry's conventions."""
    attributes: dict[str, Any] = {"attend.task": TASKS[type(answer)]}
    if isinstance(answer, DetectResponse):
        return attributes
    if models := ", ".join(dict.fromkeys(_models(answer))):
        attributes["gen_ai.request.model"] = models
    if isinstance(answer, TranslateResponse):
        return attributes | {
            "attend.direction": f"{answer.source}-{answer.target}",
            "attend.texts": len(answer.translations),
            "attend.characters": answer.usage.characters,
            "gen_ai.usage.input_tokens": answer.usage.source_tokens,
            "gen_ai.usage.output_tokens": answer.usage.target_tokens,
        }
    return attributes | {"gen_ai.usage.input_tokens": answer.usage.tokens}


def _models(answer: TranslateResponse | ClassifyResponse | RerankResponse | EmbedResponse) -> Iterator[str]:
    """A translation whose source was detected names its own model."""
    if not isinstance(answer, TranslateResponse):
        yield answer.model
        return
    makers: list[TranslateResponse | Translation] = [answer, *answer.translations]
    for maker in makers:
        if maker.pivot is not None:
            yield from maker.pivot.models
        elif maker.model is not None:
            yield maker.model
