"""The Open Inference Protocol, which the clients of KServe and Triton speak."""

from typing import Any, Literal

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from service import __version__
from service.access.guards import Guards
from service.base.errors import MethodNotAllowed, RequestError, UnknownPath, UnprocessableRequest
from service.dialects.open_inference.models import CLIENT_FIELDS, VERSION, ModelMetadata, run
from service.dialects.open_inference.tensors import (
    InferAnswer,
    InferRequest,
    Options,
    Output,
    WantedOutput,
    read_tensors,
    tensor_response,
)
from service.front.catalog import Model
from service.front.models import Models
from service.http.dialect import Backend, Dialect, ErrorBody
from service.schemas.answers import encoded
from service.schemas.requests import NonEmptyText
from service.schemas.sent import SentJson

MODEL = "/v2/models/{name:path}"
"""A name may have slashes, so longer paths must be tried first. Of two decorators the lower one is tried first."""
MODEL_VERSION = f"{MODEL}/versions/{VERSION}"
BINARY = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
"""OpenAPI's description of a body with tensors behind its JSON."""


class OpenInferenceError(ErrorBody):
    error: str
    message: str | None = Field(default=None, description="The same text, if the path may have been meant for DeepL.")

    @classmethod
    def of(cls, error: RequestError) -> "OpenInferenceError":
        if isinstance(error, UnknownPath):
            return cls(error=str(error), message=str(error))
        return cls(error=str(error))


class ServerMetadata(BaseModel):
    name: Literal["attend"] = "attend"
    version: str = __version__
    extensions: list[str] = ["binary_tensor_data", "parameters", "generate", "model_repository"]


class Live(BaseModel):
    live: Literal[True] = True


class Ready(BaseModel):
    ready: Literal[True] = True


class ModelReady(Ready):
    name: str


class IndexedModel(BaseModel):
    name: str
    version: str = VERSION
    state: Literal["READY", "UNAVAILABLE"]
    reason: str = ""


class GenerateRequest(SentJson):
    text_input: NonEmptyText
    parameters: Options = Field(default_factory=dict, description="The same as those of infer.")


class GenerateAnswer(BaseModel):
    """The model, and its outputs by name."""

    model_config = ConfigDict(extra="allow")

    model_name: str
    model_version: str


def routers(backend: Backend) -> list[APIRouter]:
    models = backend.models
    router = OPEN_INFERENCE.router(backend.access.guards(), read_tensors(backend.settings.max_body_bytes))
    health = OPEN_INFERENCE.router(Guards())

    @health.get("/v2/health/live")
    async def live(_: Request) -> Live:
        """Say that the process answers."""
        return Live()

    @health.get("/v2/health/ready")
    async def ready(_: Request) -> Ready:
        """Say whether every model takes requests."""
        models.refuse_unready()
        return Ready()

    @router.get("/v2")
    async def server_metadata(_: Request) -> ServerMetadata:
        """Return the service's name, version and extensions."""
        return ServerMetadata()

    @router.post("/v2/repository/index", response_model=list[IndexedModel])
    async def repository_index(_: Request) -> Response:
        """List the models, and whether they are ready."""
        listed = [_indexed(models, model.manifest.name) for model in models.catalog]
        # Never compressed: tritonclient.http.aio accepts gzip here, and then cannot read it.
        return Response(f"[{','.join(model.model_dump_json() for model in listed)}]", media_type="application/json")

    of_infer: dict[str, Any] = {
        "response_model": InferAnswer,
        "responses": {200: {"content": BINARY}},
        "openapi_extra": {"requestBody": {"content": BINARY}},
    }

    @router.post(f"{MODEL}/infer", **of_infer)
    @router.post(f"{MODEL_VERSION}/infer", **of_infer)
    async def infer(request: InferRequest, http: Request, name: str) -> Response:
        """Translate, label or embed the texts of a tensor. Tensors are in JSON, or follow it as bytes."""
        [tensor] = request.inputs
        texts = tensor.texts()
        model = models.catalog.named(name)
        wanted = _wanted_outputs(request, model)
        values = await run(models, model, texts, request.parameters, http.state.context)
        outputs = [Output(name, tensor.shape, values[name], is_binary) for name, is_binary in wanted]
        return await tensor_response(request, name, VERSION, outputs, http)

    @router.post(f"{MODEL}/generate")
    @router.post(f"{MODEL_VERSION}/generate")
    async def generate(request: GenerateRequest, http: Request, name: str) -> GenerateAnswer:
        """Translate, label or embed one text, without tensors."""
        model = models.catalog.named(name)
        values = await run(models, model, [request.text_input], request.parameters, http.state.context)
        outputs = {key: encoded(of[0], "json") if isinstance(of, np.ndarray) else of[0] for key, of in values.items()}
        return GenerateAnswer(model_name=name, model_version=VERSION, **outputs)

    @router.get(f"{MODEL}/ready")
    @router.get(f"{MODEL_VERSION}/ready")
    async def model_ready(_: Request, name: str) -> ModelReady:
        """Say whether the model takes requests."""
        models.refuse_unready_model(name)
        return ModelReady(name=name)

    @router.get(MODEL)
    @router.get(MODEL_VERSION)
    async def model_metadata(_: Request, name: str) -> ModelMetadata:
        """Return the tensors of a model."""
        return ModelMetadata.of(models.catalog.named(name))

    @router.post("/v2/models/{path:path}", include_in_schema=False)
    async def no_such_path(http: Request, path: str) -> None:
        """Refuse an unknown path. Without this route it would be taken for a model's name, which takes no POST."""
        if any(path.removesuffix(f"/versions/{VERSION}") == model.manifest.name for model in models.catalog):
            raise MethodNotAllowed(f"{http.url.path} does not take POST; allowed: GET", "GET")
        raise UnknownPath(f"Nothing is at {http.url.path}")

    return [health, router]


def _indexed(models: Models, name: str) -> IndexedModel:
    if models.is_ready(name):
        return IndexedModel(name=name, state="READY")
    return IndexedModel(name=name, state="UNAVAILABLE", reason="it is not ready; /health/ready says why")


def _wanted_outputs(request: InferRequest, model: Model) -> list[tuple[str, bool]]:
    """Return the names of outputs, and whether each follows the JSON as bytes. Raises UnprocessableRequest: the model
    has no output of this name, or the output has an unknown parameter."""
    names = [output.name for output in ModelMetadata.of(model).outputs]
    for output in request.outputs or ():
        if output.name not in names:
            raise UnprocessableRequest(
                f"`outputs` must be of {model.manifest.name}, not {output.name}; available: {', '.join(names)}"
            )
        for parameter in output.parameters.keys() - {"binary_data"}:
            raise UnprocessableRequest(f"`outputs` {output.name} has the parameter {parameter}; available: binary_data")
    outputs = request.outputs or [WantedOutput(name=name) for name in names]
    default = request.parameters.get("binary_data_output")
    return [(output.name, output.parameters.get("binary_data", default) is True) for output in outputs]


OPEN_INFERENCE = Dialect(
    name="open_inference",
    about="The Open Inference Protocol of KServe and Triton, with Triton's extensions for binary tensors, parameters, "
    "generate and the index of models.",
    paths=("/v2",),
    error=OpenInferenceError,
    routers=routers,
    statuses={422: 400},
    client_fields=CLIENT_FIELDS,
)
