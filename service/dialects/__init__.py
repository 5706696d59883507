"""Interfaces of other services, whose clients work here unchanged. Each one turns its requests into native ones, asks
the models, and turns the answers back.

A dialect is a file of this folder, or a folder. It has a `Dialect`, which `ALL` lists. Nothing else knows of it but the
setting `dialects`, which has the names of all. To add one:

1.  `acme.py` has the requests and answers as pydantic models, an `AcmeError(ErrorBody)` whose `of(error)` returns the
    body of an error, and a function that makes the routers. Requests have the base `Sent`, or `StopsEarly` if values
    are converted. `Backend`, `Dialect`, `ErrorBody` and `Sent` are in `service.http.dialect`, `validate` is in
    `service.http.json_route`:

        def routers(backend: Backend) -> list[APIRouter]:
            router = ACME.router(backend.access.guards())  # checks key and rate before the body is read

            @router.post("/acme/translate")
            async def translate(request: AcmeRequest, http: Request) -> AcmeAnswer:
                return from_native(await backend.models.translate(to_native(request), http.state.context))

            return [router]

        def to_native(request: AcmeRequest) -> TranslateRequest:
            return validate(TranslateRequest, {"text": request.q, "target": request.to})

        def from_native(answer: TranslateResponse) -> AcmeAnswer:
            return AcmeAnswer(a=[one.text for one in answer.translations])

        ACME = Dialect("acme", "What /openapi.json says.", ("/acme",), AcmeError, routers, statuses={422: 400},
                       client_fields={"text": ("q",), "target": ("to",)})

    An endpoint takes the body, the request, and the parameters of its path and query. It returns a value that becomes
    JSON, or a `Response`. To leave out fields that are None, its route has `response_model_exclude_none=True`.
2.  Endpoints let errors of `service.base.errors` pass. Each error below `paths` becomes `AcmeError.of(error)`, also
    those of unknown paths, methods, keys, rates, bodies and bugs; `statuses` changes their statuses. `client_fields`
    has the client's names of native fields, where they differ: errors of validation and of the models use them.
    A router whose routes have other names gets its own `client_fields`.
3.  `ACME.router(guards, read_body)` says how bodies are read: `bodies.json_body`, the default, takes JSON of any
    content type; `bodies.form_or_json` takes fields of the query, and of a form or JSON. `bodies.fields_of(request)`
    returns these fields without a model, also for a GET.
4.  `access.guards(credentials)` says where the key is: `Credentials(key, hint, scheme)`. `key` may read the body, by
    `bodies.fields_of`. `access.guards(None)` checks rates but no key, `Guards()` nothing. Each has a router of its own.
5.  `Dialect(..., is_open_to_all=True)` lets pages of every origin read the answers (CORS), and with
    `access.guards(..., is_open_to_all=True)` they may ask. `paths_of_documents` take files, whose bodies may be larger.
6.  `service.dialects.shared` has what several need: codes of languages both ways (`LanguageCodes`), texts that may be
    empty (`translate_texts`), files whose clients wait (`translated_file`), places of keys (`credentials`). Where the
    other service's reference describes its answers, an endpoint may return them as `dict[str, Any]`.
7.  Add the dialect to `ALL`, add its name to `Dialect` in `service/base/settings.py`, and run `make docs`. If several
    dialects have a path, it belongs to the one whose `paths` match most of it, and among those to the first in `ALL`.
"""

from collections.abc import Iterable

from service.base.settings import Settings
from service.dialects.amazon import AMAZON
from service.dialects.azure import AZURE
from service.dialects.cohere import COHERE
from service.dialects.deepl import DEEPL
from service.dialects.deeplx import DEEPLX
from service.dialects.google import GOOGLE
from service.dialects.hugging_face import HUGGING_FACE
from service.dialects.libretranslate import LIBRETRANSLATE
from service.dialects.lingva import LINGVA
from service.dialects.mcp import MCP
from service.dialects.mtranserver import MTRANSERVER
from service.dialects.open_inference import OPEN_INFERENCE
from service.dialects.openai import OPENAI
from service.http.dialect import Dialect

ALL: tuple[Dialect, ...] = (
    LIBRETRANSLATE,
    OPEN_INFERENCE,
    DEEPL,
    HUGGING_FACE,
    OPENAI,
    COHERE,
    GOOGLE,
    AZURE,
    AMAZON,
    MTRANSERVER,
    DEEPLX,
    LINGVA,
    MCP,
)


def enabled(settings: Settings) -> Iterable[Dialect]:
    """Return the dialects that the settings name."""
    return [dialect for dialect in ALL if dialect.name in settings.dialects]
