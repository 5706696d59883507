"""Interfaces of others, whose clients work here unchanged. Each turns its requests into native ones, and answers back.

A dialect is a file of this folder, or a folder, with a `Dialect`, which `ALL` lists, and a setting of its name that
turns it off. Nothing else knows of it. So another one is added:

1.  `name.py` has its requests and answers as pydantic models (requests ignore fields that they do not know, as pydantic
    does by default), its `Error(ErrorBody)`, and a function that makes its routers:

        def routers(models: Models, settings: Settings, access: Access) -> list[APIRouter]:
            router = NAME.router(access.guards())           # checks keys and rates before it reads a body

            @router.post("/name/translate")
            async def translate(request: NameRequest, http: Request) -> NameAnswer:
                native = TranslateRequest(text=request.q)
                answer = await models.translate(native, http.state.context)
                return NameAnswer(...)

            return [router]

        NAME = Dialect("name", "What /openapi.json says.", ("/name",), NameError, routers, {422: 400})

    An endpoint takes its body, the request and the parameters of its path, and returns what becomes JSON, or a
    `Response`. Whatever it raises of `service.base.errors` is answered by `NameError.of(error)` under the status that
    the last argument makes of its own; so are unknown paths below `/name`, other methods, keys, rates, bodies and bugs.
    An answer whose fields may be missing has `response_model_exclude_none=True` on its route.
2.  `router(guards, read_body=...)` chooses how bodies are read: `bodies.json_body`, whatever their type, by default;
    `bodies.form_or_json` for fields of the query, and of forms or JSON as the type says. `bodies.fields_of(request)`
    has the same fields without a model, and is what reads the body of a GET.
3.  `access.guards(credentials)` says where keys are: `Credentials(key, hint, scheme)`. `key` may read the body, by
    `fields_of`. `access.guards(None)` asks for no key, `Guards()` for nothing at all; each wants a router of its own.
4.  `Dialect(..., is_open_to_all=True)` lets pages of every origin read answers (CORS).
5.  `ALL` gets it, and `service/base/settings.py` a setting `name`, true by default; then `make docs`. A path belongs
    to the dialect that names most of it, and of several to the first.

POST routes without parameters in their path are called at once, as native ones are.
"""

from collections.abc import Iterable

from service.base.settings import Settings
from service.dialects.deepl import DEEPL
from service.dialects.hugging_face import HUGGING_FACE
from service.dialects.libretranslate import LIBRETRANSLATE
from service.dialects.open_inference import OPEN_INFERENCE
from service.dialects.openai import OPENAI
from service.http.dialect import Dialect

ALL: tuple[Dialect, ...] = (LIBRETRANSLATE, OPEN_INFERENCE, DEEPL, HUGGING_FACE, OPENAI)


def enabled(settings: Settings) -> Iterable[Dialect]:
    """Those that are not turned off."""
    return [dialect for dialect in ALL if getattr(settings, dialect.name)]
