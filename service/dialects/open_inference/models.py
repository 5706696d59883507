"""Models as the Open Inference Protocol sees them: a tensor of texts goes in, tensors come out."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from service.base.errors import UnprocessableRequest
from service.dialects.open_inference.tensors import TEXT
from service.front.catalog import Model
from service.front.models import Models
from service.http.json_route import validate
from service.schemas.answers import ClassifyResponse, EmbedResponse, TranslateResponse
from service.schemas.requests import ClassifyRequest, EmbedRequest, TranslateRequest
from service.tasks.classification import Classifier
from service.tasks.context import Context
from service.tasks.translation.translator import Translator

VERSION = "1"
"""The only version of every model: a new one replaces the former one."""
NOT_OPTIONS = frozenset(
    ("timeout", "priority", "sequence_id", "sequence_start", "sequence_end", "headers", "binary_data_output")
)
"""Parameters of the protocol, which are no options of a model. Those that begin with `triton_` are none either."""
NOT_FOR_TENSORS = frozenset({
    "text", "model", "timeout_s", "attention", "alignment", "alternatives", "evidence", "encoding", "pooling",
    "text_pair", "logits", "truncate", "truncation_direction",
})  # fmt: skip
"""Native fields that the protocol expresses in another way, or whose results it has no tensors for."""
Native = TypeVar("Native", TranslateRequest, ClassifyRequest, EmbedRequest)
Values = Sequence[str] | NDArray[np.float32]
CLIENT_FIELDS = {
    option: ("parameters", option) for kind in (TranslateRequest, EmbedRequest) for option in kind.model_fields
} | {"text": (TEXT,), "timeout_s": ("parameters", "timeout")}


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


def _outputs(model: Model) -> list[TensorMetadata]:
    score = TensorMetadata(name="score", datatype="FP32", shape=[-1])
    if isinstance(model, Translator):
        return [TensorMetadata(name="text_output", datatype="BYTES", shape=[-1]), score]
    if isinstance(model, Classifier):
        scores = TensorMetadata(name="scores", datatype="FP32", shape=[-1, len(model.manifest.labels)])
        return [TensorMetadata(name="label", datatype="BYTES", shape=[-1]), score, scores]
    return [TensorMetadata(name="embedding", datatype="FP32", shape=[-1, model.dimensions])]


async def run(
    models: Models, model: Model, texts: list[str], parameters: Mapping[str, Any], context: Context
) -> dict[str, Values]:
    """Run a model on texts, and return each of its outputs by name. Raises UnprocessableRequest: a parameter is no
    option of the model, or the texts are not acceptable. Raises RequestError: errors of `Models`."""
    if isinstance(model, Translator):
        translate = to_native(TranslateRequest, model, texts, parameters)
        return from_native(await models.translate(translate, context), model)
    if isinstance(model, Classifier):
        classify = to_native(ClassifyRequest, model, texts, parameters)
        return from_native(await models.classify(classify, context), model)
    embed = to_native(EmbedRequest, model, texts, parameters).model_copy(update={"encoding": "base64"})
    return from_native(await models.embed(embed, context), model)


def to_native(kind: type[Native], model: Model, texts: list[str], parameters: Mapping[str, Any]) -> Native:
    """Return the native request. Raises UnprocessableRequest: a parameter is no option, or its value is not allowed."""
    name, available = model.manifest.name, kind.model_fields.keys() - NOT_FOR_TENSORS
    of_protocol = {key for key in parameters if key in NOT_OPTIONS or key.startswith("triton_")}
    options = {key: value for key, value in parameters.items() if value is not None and key not in of_protocol}
    for key in options.keys() - available:
        listed = ", ".join(sorted(available)) or "none"
        raise UnprocessableRequest(f"`parameters.{key}` is not an option of {name}; available: {listed}")
    timeout = parameters.get("timeout") or None
    if timeout is not None:
        if type(timeout) is not int or not 0 <= timeout < 2**63:
            raise UnprocessableRequest(f"`parameters.timeout` must be a number of microseconds, not {timeout!r}")
        options["timeout_s"] = timeout / 1e6
    return validate(kind, {**options, "text": texts, "model": name})


def from_native(answer: TranslateResponse | ClassifyResponse | EmbedResponse, model: Model) -> dict[str, Values]:
    """Return the outputs by name. `scores` are in the order of the model's labels."""
    if isinstance(answer, TranslateResponse):
        translations = answer.translations
        return {
            "text_output": [translation.text for translation in translations],
            "score": _floats([translation.score for translation in translations]),
        }
    if isinstance(answer, ClassifyResponse):
        predictions, labels = answer.predictions, model.manifest.labels
        return {
            "label": [prediction.label for prediction in predictions],
            "score": _floats([prediction.score for prediction in predictions]),
            "scores": _floats([[prediction.scores[label] for label in labels] for prediction in predictions]),
        }
    raw = b"".join(base64.b64decode(text.embedding) for text in answer.embeddings)  # type: ignore[union-attr, arg-type]
    return {"embedding": np.frombuffer(raw, "<f4").reshape(-1, answer.dimensions)}


def _floats(values: Any) -> NDArray[np.float32]:
    return np.array(values, np.float32)
