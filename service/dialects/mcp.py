"""The Model Context Protocol, by which agents call tools (modelcontextprotocol.io, streamable HTTP).

Each request is answered alone, in JSON: there are no sessions and no streams. Versions up to 2025-11-25 begin with
`initialize`; 2026-07-28 names its version in every request, and its results have a type.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any, Literal, NamedTuple

from fastapi import APIRouter, Request, Response
from pydantic import Field

from service import __version__
from service.base.errors import BadRequest, RequestError
from service.dialects.shared.files import translated_content
from service.dialects.shared.languages import LanguageCodes
from service.dialects.shared.texts import detect_texts, translate_texts
from service.http.dialect import Backend, Dialect, ErrorBody
from service.http.files import name_of
from service.http.json_route import parse_json, validate
from service.http.problems import ascii_json
from service.schemas.requests import ClassifyRequest
from service.schemas.sent import SentJson
from service.storage.database_threads import in_thread
from service.tasks.context import Context

PATH = "/mcp"
STATELESS = "2026-07-28"
WITH_HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26")
"""Versions that begin with `initialize`, the newest first."""
VERSION_HEADER, VERSION_KEY = "mcp-protocol-version", "io.modelcontextprotocol/protocolVersion"
SERVER = {"name": "attend", "version": __version__}
CAPABILITIES: dict[str, Any] = {"tools": {}}
READS_ALONE = {"readOnlyHint": True, "openWorldHint": False}
CODES = LanguageCodes()

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
OTHER_HEADER, UNKNOWN_VERSION, REFUSED = -32020, -32022, -32000
STATUSES = {NO_METHOD: 404, INVALID_REQUEST: 400, OTHER_HEADER: 400, UNKNOWN_VERSION: 400, INVALID_PARAMS: 400}
"""HTTP statuses of errors. A version with a handshake has 200 for requests that can be read."""

Result = dict[str, Any]


class McpError(ErrorBody):
    """The answer to a request that is refused before its message is read."""

    jsonrpc: str
    id: None
    error: dict[str, Any]

    @classmethod
    def of(cls, error: RequestError) -> "McpError":
        code = PARSE_ERROR if isinstance(error, BadRequest) else REFUSED
        return cls(jsonrpc="2.0", id=None, error={"code": code, "message": str(error)})


class _RpcError(Exception):
    """A message that is answered with an error of JSON-RPC."""

    def __init__(self, code: int, message: str, **data: Any) -> None:
        super().__init__(message)
        self.code = code
        self.body = {"code": code, "message": message} | ({"data": data} if data else {})


class TextToTranslate(SentJson):
    """Translate a text, or each text of a list. Numbers, names, links and placeholders come back as they were."""

    text: str | list[str]
    target: str = Field(description="Code of the language to translate into, such as fr.")
    source: str | None = Field(default=None, description="Code of the text's language; left out: detected.")
    format: Literal["text", "html", "xml", "markdown"] = "text"
    glossary_id: str | None = Field(default=None, description="Id of a glossary (list_glossaries).")
    memory_id: str | None = Field(default=None, description="Id of a translation memory (list_memories).")


class FileToTranslate(SentJson):
    """Translate a file, such as .docx, .pptx, .xlsx, .pdf, .html, .md, .srt or .po. Its layout stays."""

    name: str = Field(description="Name of the file; its ending tells the kind.")
    content: str = Field(description="The file in base64.")
    target: str = Field(description="Code of the language to translate into, such as fr.")
    source: str | None = Field(default=None, description="Code of the file's language; left out: detected.")


class TextToDetect(SentJson):
    """Detect the language of a text."""

    text: str


class TextToClassify(SentJson):
    """Label a text, as the classifier of this server was trained: the one that is shipped says whether it is positive
    or negative."""

    text: str
    model: str | None = Field(default=None, description="Name of a classifier.")


class LanguagesToList(SentJson):
    """List the languages that are translated, each with those into which it is."""


class GlossariesToList(SentJson):
    """List the stored glossaries, without their terms."""


class MemoriesToList(SentJson):
    """List the translation memories, without their segments."""


class GlossaryToGet(SentJson):
    """Return the terms of a glossary."""

    glossary_id: str


class Tool(NamedTuple):
    arguments: type[SentJson]
    """Its docstring describes the tool."""
    call: Callable[[Any, Context], Awaitable[Result]]

    def described(self, name: str) -> Result:
        """Return what an agent reads of the tool."""
        schema = self.arguments.model_json_schema()
        description = schema.pop("description")
        return {"name": name, "description": description, "inputSchema": schema, "annotations": READS_ALONE}


def tools_of(backend: Backend) -> dict[str, Tool]:
    """Return the tools by name. Each takes its arguments and the request's context, and returns an object."""
    models, glossaries = backend.models, backend.stores.glossaries

    async def translate(request: TextToTranslate, context: Context) -> Result:
        texts = [request.text] if isinstance(request.text, str) else request.text
        options = request.model_dump(include={"format", "glossary_id", "memory_id"}, exclude_none=True)
        translated = await translate_texts(models, CODES, texts, request.source, request.target, context, **options)
        return {"translations": [{"text": text.text, "source": text.source} for text in translated]}

    async def translate_document(request: FileToTranslate, context: Context) -> Result:
        source, content = await translated_content(
            backend, "content", request.content, name_of(request.name), request.source, request.target, context
        )
        return {"source": source, "content": content}

    async def detect(request: TextToDetect, context: Context) -> Result:
        [ranked] = await detect_texts(models, CODES, [request.text], context)
        return {"languages": [language.model_dump() for language in ranked]}

    async def classify(request: TextToClassify, context: Context) -> Result:
        native = validate(ClassifyRequest, request.model_dump(exclude_none=True))
        [prediction] = (await models.classify(native, context)).predictions
        return {"label": prediction.label, "scores": prediction.scores}

    async def list_languages(_: LanguagesToList, __: Context) -> Result:
        return {
            "languages": [
                {"code": language.language, "name": language.name, "targets": language.all_targets}
                for language in models.catalog.directions(None).reachable()
            ]
        }

    async def list_glossaries(_: GlossariesToList, context: Context) -> Result:
        stored = await in_thread(glossaries.all, context.requester)
        return {
            "glossaries": [
                {
                    "glossary_id": glossary.id,
                    "name": glossary.name,
                    "pairs": [f"{dictionary.source}-{dictionary.target}" for dictionary in glossary.dictionaries],
                }
                for glossary in stored
            ]
        }

    async def list_memories(_: MemoriesToList, context: Context) -> Result:
        stored = await in_thread(backend.stores.memories.all, context.requester)
        return {
            "memories": [
                {"memory_id": memory.id, "name": memory.name, "pair": f"{memory.source}-{memory.target}"}
                for memory in stored
            ]
        }

    async def get_glossary(request: GlossaryToGet, context: Context) -> Result:
        glossary, entries = await in_thread(glossaries.get_with_entries, context.requester, request.glossary_id)
        terms = {
            f"{dictionary.source}-{dictionary.target}": its_terms
            for dictionary, its_terms in zip(glossary.dictionaries, entries, strict=True)
        }
        return {"name": glossary.name, "terms": terms}

    return {
        "translate": Tool(TextToTranslate, translate),
        "translate_document": Tool(FileToTranslate, translate_document),
        "detect_language": Tool(TextToDetect, detect),
        "classify": Tool(TextToClassify, classify),
        "list_languages": Tool(LanguagesToList, list_languages),
        "list_glossaries": Tool(GlossariesToList, list_glossaries),
        "list_memories": Tool(MemoriesToList, list_memories),
        "get_glossary": Tool(GlossaryToGet, get_glossary),
    }


class _Message(NamedTuple):
    """A request that has been read."""

    id: str | int
    method: str
    params: Result
    is_stateless: bool


def routers(backend: Backend) -> list[APIRouter]:
    router, tools = MCP.router(backend.access.guards()), tools_of(backend)

    async def result_of(message: _Message, context: Context) -> Result:
        match message.method:
            case "initialize":
                wanted = message.params.get("protocolVersion")
                version = wanted if wanted in WITH_HANDSHAKE else WITH_HANDSHAKE[0]
                return {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": SERVER}
            case "server/discover":
                versions = [STATELESS, *WITH_HANDSHAKE]
                return {
                    "supportedVersions": versions,
                    "capabilities": CAPABILITIES,
                    "ttlMs": 0,
                    "cacheScope": "private",
                }
            case "ping":
                return {}
            case "tools/list":
                listed = {"tools": [tool.described(name) for name, tool in tools.items()]}
                return listed | ({"ttlMs": 0, "cacheScope": "private"} if message.is_stateless else {})
            case "tools/call":
                return await _called(tools, message.params, context)
        raise _RpcError(NO_METHOD, f"There is no method {message.method}")

    @router.post(PATH)
    async def answer(http: Request) -> Response:
        """Answer a message of JSON-RPC."""
        content, number = parse_json(await http.body()), None
        try:
            message = _read(content, http)
            if message is None:
                return Response(status_code=202)
            number = message.id
            result = await result_of(message, http.state.context)
        except _RpcError as error:
            if isinstance(content, dict) and isinstance(content.get("id"), str | int):
                number = content["id"]
            is_plain = number is not None and http.headers.get(VERSION_HEADER, "") != STATELESS
            status = 200 if is_plain else STATUSES[error.code]
            return ascii_json({"jsonrpc": "2.0", "id": number, "error": error.body}, status, {}, "application/json")
        if message.is_stateless:
            result |= {"resultType": "complete", "_meta": {"io.modelcontextprotocol/serverInfo": SERVER}}
        return ascii_json({"jsonrpc": "2.0", "id": number, "result": result}, 200, {}, "application/json")

    return [router]


def _read(content: Any, http: Request) -> _Message | None:
    """Return a request; None for a notification, which has no id. Raises _RpcError: it is neither, its version is
    unknown, or its headers say something else."""
    if not isinstance(content, dict) or not isinstance(content.get("method"), str):
        raise _RpcError(INVALID_REQUEST, "The body must be one request or notification of JSON-RPC")
    params, number = content.get("params") or {}, content.get("id")
    if not isinstance(params, dict) or not isinstance(number, str | int | None) or isinstance(number, bool):
        raise _RpcError(INVALID_REQUEST, "`params` must be an object, and `id` a string or an integer")
    if "id" not in content:
        return None
    if number is None:
        raise _RpcError(INVALID_REQUEST, "`id` must be a string or an integer")
    meta = params.get("_meta")
    version = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
    header = http.headers.get(VERSION_HEADER)
    for named in (header, version):
        if named not in (None, STATELESS, *WITH_HANDSHAKE):
            versions = [STATELESS, *WITH_HANDSHAKE]
            raise _RpcError(UNKNOWN_VERSION, f"Version {named} is not supported", supported=versions, requested=named)
    if header == STATELESS or version == STATELESS:
        said = {VERSION_HEADER: version, "mcp-method": content["method"], "mcp-name": params.get("name")}
        for name, value in said.items():
            if value is not None and http.headers.get(name) != value:
                raise _RpcError(OTHER_HEADER, f"The header {name} must be {value}, as in the message")
    return _Message(number, content["method"], params, STATELESS in (header, version))


async def _called(tools: dict[str, Tool], params: Result, context: Context) -> Result:
    """Call a tool. What it refuses is a result, which an agent can read and act on. Raises _RpcError: no tool has this
    name."""
    name = params.get("name")
    if not isinstance(name, str) or name not in tools:
        raise _RpcError(INVALID_PARAMS, f"There is no tool {name}; available: {', '.join(tools)}")
    tool = tools[name]
    try:
        result = await tool.call(validate(tool.arguments, params.get("arguments") or {}), context)
    except RequestError as error:
        return {"content": [{"type": "text", "text": _told(error)}], "isError": True}
    text = json.dumps(result, ensure_ascii=False)
    return {"content": [{"type": "text", "text": text}], "structuredContent": result, "isError": False}


def _told(error: RequestError) -> str:
    """Return what an agent reads of an error."""
    fields = {path[0] for path, _ in error.fields if path}
    return f"{error}; the tool list_languages has the languages" if fields & {"source", "target"} else str(error)


MCP = Dialect(
    name="mcp",
    about="The Model Context Protocol, for agents: translation, classification and glossaries as tools.",
    paths=(PATH,),
    error=McpError,
    routers=routers,
    statuses={"key_missing": 403},  # 401 begins a search for an authorization server
)
