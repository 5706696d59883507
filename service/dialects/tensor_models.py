"""Models as the Open Inference Protocol sees them: a tensor of texts goes in, tensors come out."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from service.base.errors import UnprocessableRequest
from service.dialects.tensors import TEXT
from service.http.bodies import as_native
from service.models.catalog import Model
from service.models.models import Models
from service.schemas.requests import ClassifyRequest, EmbedRequest, TranslateRequest
from service.tasks.classification import Classifier
from service.tasks.context import Context
from service.tasks.translation import Translator

VERSION = "1"
"""Of every model: a new one takes the place of the former one."""

RESERVED = frozenset({"timeout", "priority", "sequence_id", "sequence_start", "sequence_end", "headers"}) | {
    "binary_data_output"
}
"""Parameters that are no options of a model."""
NOT_FOR_TENSORS = frozenset({"text", "model", "timeout_s", "attention", "alignment", "alternatives", "evidence"}) | {
    "encoding",
    "pooling",
}
"""Fields of native requests that the protocol has in another way, or whose results it has no tensors for."""

Values = Sequence[str] | NDArray[np.float32]
Native = TypeVar("Native", TranslateRequest, ClassifyRequest, EmbedRequest)


class TensorMetadata(BaseModel):
    name: str
    datatype: Literal["BYTES", "FP32"]
    shape: list[int] = Field(description="-1 stands for the number of texts.")


class ModelMetadata(BaseModel):
    name: str
    versions: list[str] = [VERSION]
    platform: Literal["onnx_onnxv1"] = "onnx_onnxv1"
    inputs: list[TensorMetadata] = [TensorMetadata(name=TEXT, datatype="BYTES", shape=[-1])]
    outputs: list[TensorMetadata]

    @classmethod
    def of(cls, model: Model) -> "ModelMetadata":
        return cls(name=model.manifest.name, outputs=_outputs(model))


async def run(
    models: Models, model: Model, texts: list[str], parameters: Mapping[str, Any], context: Context
) -> dict[str, Values]:
    """Run a model on texts, and return every output by its name.

    Raises:
        UnprocessableRequest: a parameter is no option of the model, or texts are not acceptable.
        RequestError: what the native routes answer with.
    """
    if isinstance(model, Translator):
        translated = await models.translate(_native(TranslateRequest, model, texts, parameters), context)
        found = translated.translations
        return {"text_output": [one.text for one in found], "score": _numbers([one.score for one in found])}
    if isinstance(model, Classifier):
        classified = await models.classify(_native(ClassifyRequest, model, texts, parameters), context)
        labels, predictions = model.manifest.labels, classified.predictions
        return {
            "label": [one.label for one in predictions],
            "score": _numbers([one.score for one in predictions]),
            "scores": _numbers([[one.scores[label] for label in labels] for one in predictions]),
        }
    embed = _native(EmbedRequest, model, texts, parameters).model_copy(update={"encoding": "base64"})
    embedded = await models.embed(embed, context)
    raw = b"".join(base64.b64decode(one.embedding) for one in embedded.embeddings)  # type: ignore[union-attr, arg-type]
    return {"embedding": np.frombuffer(raw, "<f4").reshape(-1, embedded.dimensions)}


def _outputs(model: Model) -> list[TensorMetadata]:
    score = TensorMetadata(name="score", datatype="FP32", shape=[-1])
    if isinstance(model, Translator):
        return [TensorMetadata(name="text_output", datatype="BYTES", shape=[-1]), score]
    if isinstance(model, Classifier):
        scores = TensorMetadata(name="scores", datatype="FP32", shape=[-1, len(model.manifest.labels)])
        return [TensorMetadata(name="label", datatype="BYTES", shape=[-1]), score, scores]
    return [TensorMetadata(name="embedding", datatype="FP32", shape=[-1, model.dimensions])]


def _native(kind: type[Native], model: Model, texts: list[str], parameters: Mapping[str, Any]) -> Native:
    """The native request that says the same."""
    name = model.manifest.name
    followed = kind.model_fields.keys() - NOT_FOR_TENSORS
    options = {key: value for key, value in parameters.items() if not _is_reserved(key)}
    for key in options.keys() - followed:
        options_of_it = ", ".join(sorted(followed)) or "none"
        raise UnprocessableRequest(f"`parameters.{key}` is not an option of {name}; available: {options_of_it}")
    timeout = parameters.get("timeout") or None
    if timeout is not None:
        if type(timeout) is not int or not 0 <= timeout < 2**63:
            raise UnprocessableRequest(f"`parameters.timeout` must be a number of microseconds, not {timeout!r}")
        options["timeout_s"] = timeout / 1e6
    sent_as: dict[str, Sequence[str]] = {field: ("parameters", field) for field in followed}
    return as_native(kind, {**options, "text": texts, "model": name}, sent_as | {"text": (TEXT,)})


def _is_reserved(parameter: str) -> bool:
    return parameter in RESERVED or parameter.startswith("triton_")


def _numbers(values: Any) -> NDArray[np.float32]:
    return np.array(values, np.float32)
