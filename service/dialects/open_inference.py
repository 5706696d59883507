"""The Open Inference Protocol, which the clients of KServe and Triton speak."""

from typing import Any, Literal

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from service import __version__
from service.base.errors import MethodNotAllowed, NotReady, RequestError, UnknownPath, UnprocessableRequest
from service.base.settings import Settings
from service.dialects.tensor_models import VERSION, ModelMetadata, run
from service.dialects.tensors import (
    InferAnswer,
    InferRequest,
    Options,
    Output,
    WantedOutput,
    read_tensors,
    written,
)
from service.http.access import Access, Guards
from service.http.dialect import Dialect, ErrorBody, Sent
from service.models.catalog import Model
from service.models.models import Models
from service.schemas.answers import encoded
from service.schemas.requests import NonEmptyText

MODEL = "/v2/models/{name:path}"
"""Names may have slashes, so that what is longer is tried first: of decorators that is the lower one."""
ITS_VERSION = f"{MODEL}/versions/{VERSION}"
BINARY = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
"""How OpenAPI describes tensors behind JSON."""


class OpenInferenceError(ErrorBody):
    error: str
    message: str | None = Field(default=None, description="The same, where the path may have been meant for DeepL.")

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


class GenerateRequest(Sent):
    text_input: NonEmptyText
    parameters: Options = Field(default={}, description="As those of infer.")


class GenerateAnswer(BaseModel):
    """The model, and its outputs by name."""

    model_config = ConfigDict(extra="allow")

    model_name: str
    model_version: str


def routers(models: Models, settings: Settings, access: Access) -> list[APIRouter]:
    router = OPEN_INFERENCE.router(access.guards(), read_tensors(settings.max_body_bytes))
    health = OPEN_INFERENCE.router(Guards())

    @health.get("/v2/health/live")
    async def live(_: Request) -> Live:
        """The process answers."""
        return Live()

    @health.get("/v2/health/ready")
    async def ready(_: Request) -> Ready:
        """Every model is ready."""
        reason = models.unready_reason()
        if reason is not None:
            raise NotReady(f"Not ready: {reason}")
        return Ready()

    @router.get("/v2")
    async def server_metadata(_: Request) -> ServerMetadata:
        """Which service this is."""
        return ServerMetadata()

    @router.post("/v2/repository/index", response_model=list[IndexedModel])
    async def repository_index(_: Request) -> Response:
        """The models that serve here."""
        listed = [_indexed(models, model.manifest.name) for model in models.catalog]
        # Never compressed: tritonclient.http.aio asks for that, and then cannot read it.
        return Response(f"[{','.join(one.model_dump_json() for one in listed)}]", media_type="application/json")

    of_infer: dict[str, Any] = {
        "response_model": InferAnswer,
        "responses": {200: {"content": BINARY}},
        "openapi_extra": {"requestBody": {"content": BINARY}},
    }

    @router.post(f"{MODEL}/infer", **of_infer)
    @router.post(f"{ITS_VERSION}/infer", **of_infer)
    async def infer(request: InferRequest, http: Request, name: str) -> Response:
        """Translate, label or embed the texts of a tensor. Tensors are in JSON, or binary behind it."""
        [tensor] = request.inputs
        texts = tensor.texts()
        model = models.catalog.named(name)
        wanted = _wanted(request, model)
        made = await run(models, model, texts, request.parameters, http.state.context)
        outputs = [Output(one.name, tensor.shape, made[one.name], _is_binary(one, request)) for one in wanted]
        return await written(request, name, VERSION, outputs, http)

    @router.post(f"{MODEL}/generate")
    @router.post(f"{ITS_VERSION}/generate")
    async def generate(request: GenerateRequest, http: Request, name: str) -> GenerateAnswer:
        """The same of one text, without tensors."""
        model = models.catalog.named(name)
        made = await run(models, model, [request.text_input], request.parameters, http.state.context)
        first = {output: encoded(of[0], "json") if isinstance(of, np.ndarray) else of[0] for output, of in made.items()}
        return GenerateAnswer(model_name=name, model_version=VERSION, **first)

    @router.get(f"{MODEL}/ready")
    @router.get(f"{ITS_VERSION}/ready")
    async def model_ready(_: Request, name: str) -> ModelReady:
        """The model takes requests."""
        models.refuse_unready(name)
        return ModelReady(name=name)

    @router.get(MODEL)
    @router.get(ITS_VERSION)
    async def model_metadata(_: Request, name: str) -> ModelMetadata:
        """The tensors of a model."""
        return ModelMetadata.of(models.catalog.named(name))

    @router.post("/v2/models/{path:path}", include_in_schema=False)
    async def no_such_path(http: Request, path: str) -> None:
        """Without this, a path of which nothing is known would be that of a model, which takes no POST."""
        if any(path.removesuffix(f"/versions/{VERSION}") == model.manifest.name for model in models.catalog):
            raise MethodNotAllowed(f"{http.url.path} does not take POST; allowed: GET", "GET")
        raise UnknownPath(f"Nothing is at {http.url.path}")

    return [health, router]


def _indexed(models: Models, name: str) -> IndexedModel:
    if models.is_ready(name):
        return IndexedModel(name=name, state="READY")
    return IndexedModel(name=name, state="UNAVAILABLE", reason="it is not ready; /health/ready says why")


def _wanted(request: InferRequest, model: Model) -> list[WantedOutput]:
    """Those that are named, or all.

    Raises:
        UnprocessableRequest: the model has none of a name, or it is wanted in a way that there is not.
    """
    names = [output.name for output in ModelMetadata.of(model).outputs]
    for output in request.outputs or ():
        if output.name not in names:
            raise UnprocessableRequest(
                f"`outputs` must be of {model.manifest.name}, not {output.name}; available: {', '.join(names)}"
            )
        for parameter in output.parameters.keys() - {"binary_data"}:
            raise UnprocessableRequest(f"`outputs` {output.name} has the parameter {parameter}; available: binary_data")
    return request.outputs or [WantedOutput(name=name) for name in names]


def _is_binary(output: WantedOutput, request: InferRequest) -> bool:
    return output.parameters.get("binary_data", request.parameters.get("binary_data_output")) is True


OPEN_INFERENCE = Dialect(
    name="open_inference",
    about="The Open Inference Protocol of KServe and Triton, with Triton's extensions for binary tensors, parameters, "
    "generate and the index of models.",
    paths=("/v2",),
    error=OpenInferenceError,
    routers=routers,
    statuses={422: 400},
)
