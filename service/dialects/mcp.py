"""The Model Context Protocol, by which agents call tools (modelcontextprotocol.io, streamable HTTP).

Each request is answered alone, in JSON: there are no sessions and no streams. Versions up to 2025-11-25 begin with
`initialize`; 2026-07-28 names its version in every request, and its results have a type.
"""

import json
from collections.abc import Awaitable, Callable
from functools import cache
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
VERSIONS = [STATELESS, *WITH_HANDSHAKE]
VERSION_HEADER, VERSION_KEY = "mcp-protocol-version", "io.modelcontextprotocol/protocolVersion"
SERVER = {"name": "attend", "version": __version__}
CAPABILITIES: dict[str, Any] = {"tools": {}}
READS_ALONE = {"readOnlyHint": True, "openWorldHint": False}
CODES = LanguageCodes()

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
OTHER_HEADER, UNKNOWN_VERSION, REFUSED = -32020, -32022, -32000
WRONG_REQUESTS = (INVALID_REQUEST, OTHER_HEADER, UNKNOWN_VERSION)
"""Errors with the status 400. Versions with a handshake have 200 for all others, such as unknown methods."""
NOT_KEPT = {"ttlMs": 0, "cacheScope": "private"}
"""Clients of the version without sessions may keep nothing of these results."""

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
    text: str | list[str]
    target: str = Field(description="Code of the language to translate into, such as fr.")
    source: str | None = Field(default=None, description="Code of the text's language; left out: detected.")
    format: Literal["text", "html", "xml", "markdown"] = "text"
    glossary_id: str | None = Field(default=None, description="Id of a glossary (list_glossaries).")
    memory_id: str | None = Field(default=None, description="Id of a translation memory (list_memories).")


class FileToTranslate(SentJson):
    name: str = Field(description="Name of the file; its ending tells the kind.")
    content: str = Field(description="The file in base64.")
    target: str = Field(description="Code of the language to translate into, such as fr.")
    source: str | None = Field(default=None, description="Code of the file's language; left out: detected.")


class TextToDetect(SentJson):
    text: str


class TextToClassify(SentJson):
    text: str
    model: str | None = Field(default=None, description="Name of a classifier.")


class GlossaryToGet(SentJson):
    glossary_id: str


class NoArguments(SentJson):
    pass


class Tool(NamedTuple):
    """A function that an agent calls.

    Attributes:
        arguments: the model of its arguments.
        call: takes the arguments and the context of the request, and returns an object. Its docstring describes the
            tool to agents.
    """

    arguments: type[SentJson]
    call: Callable[[Any, Context], Awaitable[Result]]


def tools_of(backend: Backend) -> dict[str, Tool]:
    """Return the tools by name."""
    models, glossaries = backend.models, backend.stores.glossaries

    async def translate(request: TextToTranslate, context: Context) -> Result:
        """Translate a text, or each text of a list. Numbers, names, links and placeholders come back as they were."""
        texts = [request.text] if isinstance(request.text, str) else request.text
        options = request.model_dump(include={"format", "glossary_id", "memory_id"}, exclude_none=True)
        translated = await translate_texts(models, CODES, texts, request.source, request.target, context, **options)
        return {"translations": [{"text": text.text, "source": text.source} for text in translated]}

    async def translate_document(request: FileToTranslate, context: Context) -> Result:
        """Translate a file, such as .docx, .pptx, .xlsx, .pdf, .html, .md, .srt or .po. Its layout stays."""
        source, content = await translated_content(
            backend, "content", request.content, name_of(request.name), request.source, request.target, context
        )
        return {"source": source, "content": content}

    async def detect_language(request: TextToDetect, context: Context) -> Result:
        """Detect the language of a text."""
        [ranked] = await detect_texts(models, CODES, [request.text], context)
        return {"languages": [language.model_dump() for language in ranked]}

    async def classify(request: TextToClassify, context: Context) -> Result:
        """Label a text as a classifier of this server was trained to: the shipped one tells positive from negative."""
        native = validate(ClassifyRequest, request.model_dump(exclude_none=True))
        [prediction] = (await models.classify(native, context)).predictions
        return {"label": prediction.label, "scores": prediction.scores}

    async def list_languages(_: NoArguments, __: Context) -> Result:
        """List the languages, each with those into which it is translated."""
        return {
            "languages": [
                {"code": language.language, "name": language.name, "targets": language.all_targets}
                for language in models.catalog.directions(None).reachable()
            ]
        }

    async def list_glossaries(_: NoArguments, context: Context) -> Result:
        """List the stored glossaries, without their terms."""
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

    async def list_memories(_: NoArguments, context: Context) -> Result:
        """List the translation memories, without their segments."""
        stored = await in_thread(backend.stores.memories.all, context.requester)
        return {
            "memories": [
                {"memory_id": memory.id, "name": memory.name, "pair": f"{memory.source}-{memory.target}"}
                for memory in stored
            ]
        }

    async def get_glossary(request: GlossaryToGet, context: Context) -> Result:
        """Return the terms of a glossary."""
        glossary, entries = await in_thread(glossaries.get_with_entries, context.requester, request.glossary_id)
        terms = {
            f"{dictionary.source}-{dictionary.target}": its_terms
            for dictionary, its_terms in zip(glossary.dictionaries, entries, strict=True)
        }
        return {"name": glossary.name, "terms": terms}

    tools = (
        Tool(TextToTranslate, translate),
        Tool(FileToTranslate, translate_document),
        Tool(TextToDetect, detect_language),
        Tool(TextToClassify, classify),
        Tool(NoArguments, list_languages),
        Tool(NoArguments, list_glossaries),
        Tool(NoArguments, list_memories),
        Tool(GlossaryToGet, get_glossary),
    )
    return {tool.call.__name__: tool for tool in tools}


def described(name: str, tool: Tool) -> Result:
    """Return what an agent reads of a tool."""
    schema = tool.arguments.model_json_schema()
    return {"name": name, "description": tool.call.__doc__, "inputSchema": schema, "annotations": READS_ALONE}


def routers(backend: Backend) -> list[APIRouter]:
    router, tools = MCP.router(backend.access.guards()), tools_of(backend)

    @cache
    def listed() -> list[Result]:
        return [described(name, tool) for name, tool in tools.items()]

    async def result_of(method: str, params: Result, context: Context) -> Result:
        match method:
            case "initialize":
                wanted = params.get("protocolVersion")
                version = wanted if wanted in WITH_HANDSHAKE else WITH_HANDSHAKE[0]
                return {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": SERVER}
            case "server/discover":
                return {"supportedVersions": VERSIONS, "capabilities": CAPABILITIES} | NOT_KEPT
            case "ping":
                return {}
            case "tools/list":
                return {"tools": listed()} | NOT_KEPT
            case "tools/call":
                return await _called(tools, params, context)
        raise _RpcError(NO_METHOD, f"There is no method {method}")

    @router.post(PATH)
    async def answer(http: Request) -> Response:
        """Answer a message of JSON-RPC."""
        message = parse_json(await http.body())
        if not isinstance(message, dict):
            message = {"id": None}
        number = message.get("id") if type(message.get("id")) in (str, int) else None
        status = 200
        try:
            is_stateless = _check(message, number, http)
            if "id" not in message:
                return Response(status_code=202)
            result = await result_of(message["method"], message.get("params", {}), http.state.context)
        except _RpcError as error:
            answered: Result = {"error": error.body}
            if error.code in WRONG_REQUESTS:
                status = 400
            elif http.headers.get(VERSION_HEADER) == STATELESS:
                status = 404 if error.code == NO_METHOD else 400
        else:
            if is_stateless:
                result |= {"resultType": "complete", "_meta": {"io.modelcontextprotocol/serverInfo": SERVER}}
            answered = {"result": result}
        return ascii_json({"jsonrpc": "2.0", "id": number} | answered, status, {}, "application/json")

    return [router]


def _check(message: Result, number: str | int | None, http: Request) -> bool:
    """Return whether a message is of the version without sessions. Raises _RpcError: it is neither a request nor a
    notification, which has no id; its version is unknown; or its headers say something else."""
    method, params = message.get("method"), message.get("params", {})
    if not isinstance(method, str) or not isinstance(params, dict) or ("id" in message and number is None):
        raise _RpcError(INVALID_REQUEST, "The body must be one request or notification of JSON-RPC")
    meta, header = params.get("_meta"), http.headers.get(VERSION_HEADER)
    version = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
    for named in (header, version):
        if named is not None and named not in VERSIONS:
            raise _RpcError(UNKNOWN_VERSION, f"Version {named} is not supported", supported=VERSIONS, requested=named)
    if STATELESS not in (header, version):
        return False
    for name, value in ((VERSION_HEADER, version), ("mcp-method", method), ("mcp-name", params.get("name"))):
        if value is not None and "id" in message and http.headers.get(name) != value:
            raise _RpcError(OTHER_HEADER, f"The header {name} must be {value}, as in the message")
    return True


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
