"""Google Translation, version 3: the REST form of its gRPC interface."""

from base64 import b64encode
from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import Field

from service.base.database_threads import in_thread
from service.base.errors import InvalidFields
from service.dialects.google.codes import CODES, UNKNOWN, native_model
from service.dialects.shared.fields import CamelAnswer, CamelRequest, Refused
from service.dialects.shared.files import decoded, name_of_type, translated_file
from service.dialects.shared.languages import native_source, native_target
from service.dialects.shared.texts import detect_texts, translate_texts
from service.glossaries.store import Glossary
from service.http.bodies import fields_of
from service.http.dialect import Backend
from service.http.json_route import validate
from service.schemas.requests import TranslateRequest
from service.text.languages import name_in

CLIENT_FIELDS = {
    "text": ("contents",),
    "source": ("sourceLanguageCode",),
    "target": ("targetLanguageCode",),
    "glossary_id": ("glossaryConfig", "glossary"),
}
FORMATS = {"text/html": "html", "text/plain": "text"}
MimeType = Literal["", "text/html", "text/plain"]


class GlossaryConfig(CamelRequest):
    glossary: str = Field(description="Ends in the id of a stored glossary.")
    contextual_translation_enabled: Refused = Field(default=None, description="Refused.")


class TransliterationConfig(CamelRequest):
    enable_transliteration: Refused = Field(default=None, description="Refused.")


class GoogleOptions(CamelRequest):
    target_language_code: str = Field(examples=["fr"])
    source_language_code: str | None = Field(default=None, description="Detected by default.")
    model: str | None = Field(default=None, description="Ends in general/nmt or a name from /models.")
    glossary_config: GlossaryConfig | None = Field(default=None, description="Needs a source language.")

    @property
    def glossary_id(self) -> str | None:
        """Return the id of the glossary. Raises InvalidFields: the source is not named."""
        if self.glossary_config is None:
            return None
        if not self.source_language_code:
            raise InvalidFields([(("sourceLanguageCode",), "is required with a glossary")])
        return self.glossary_config.glossary.rpartition("/")[2]


class GoogleContents(GoogleOptions):
    contents: list[str] = Field(min_length=1, examples=[["A dog runs."]])
    mime_type: MimeType = Field(default="text/html")
    transliteration_config: TransliterationConfig | None = None


class GoogleContent(CamelRequest):
    content: str = Field(examples=["A dog runs."])
    mime_type: MimeType = Field(default="text/html")


class DocumentInput(CamelRequest):
    content: str = Field(description="The file in base64.")
    mime_type: str


class GoogleDocument(GoogleOptions):
    document_input_config: DocumentInput


class GoogleGlossaryConfig(CamelAnswer):
    glossary: str


class GoogleTranslatedText(CamelAnswer):
    translated_text: str
    detected_language_code: str | None = None
    model: str | None = None
    glossary_config: GoogleGlossaryConfig | None = None


class GoogleTranslatedTexts(CamelAnswer):
    translations: list[GoogleTranslatedText]
    glossary_translations: list[GoogleTranslatedText] | None = Field(
        default=None, description="The same as `translations`, if the request names a glossary."
    )


class GoogleDetectedLanguage(CamelAnswer):
    language_code: str
    confidence: float


class GoogleDetectedLanguages(CamelAnswer):
    languages: list[GoogleDetectedLanguage]


class GoogleSupportedLanguage(CamelAnswer):
    language_code: str
    display_name: str | None = None
    support_source: bool
    support_target: bool


class GoogleSupportedLanguages(CamelAnswer):
    languages: list[GoogleSupportedLanguage]


class GoogleLanguagePair(CamelAnswer):
    source_language_code: str
    target_language_code: str


class GoogleLanguageCodes(CamelAnswer):
    language_codes: list[str]


class GoogleGlossary(CamelAnswer):
    name: str
    display_name: str
    language_pair: GoogleLanguagePair | None = None
    language_codes_set: GoogleLanguageCodes | None = Field(default=None, description="If it has several pairs.")
    entry_count: int
    submit_time: str
    end_time: str


class GoogleGlossaries(CamelAnswer):
    glossaries: list[GoogleGlossary]


class GoogleDocumentTranslation(CamelAnswer):
    byte_stream_outputs: list[str] = Field(description="The translated file in base64.")
    mime_type: str
    detected_language_code: str | None = None


class GoogleTranslatedDocument(CamelAnswer):
    document_translation: GoogleDocumentTranslation
    model: str | None = None


def add_v3(router: APIRouter, path: str, backend: Backend) -> None:
    """Add the routes of version 3.

    Args:
        path: of a project and maybe a location, whose names are taken and mean nothing.
    """
    models, glossaries = backend.models, backend.stores.glossaries

    @router.post(f"{path}:translateText", response_model_exclude_none=True)
    async def translate_text(request: GoogleContents, http: Request, parent: str) -> GoogleTranslatedTexts:  # noqa: ARG001
        """Translate texts, as HTML unless `mimeType` is text/plain."""
        found = await translate_texts(
            models,
            CODES,
            request.contents,
            request.source_language_code,
            request.target_language_code,
            http.state.context,
            format=FORMATS.get(request.mime_type, "html"),
            model=native_model(request.model),
            glossary_id=request.glossary_id,
        )
        is_detected = not request.source_language_code
        translations = [
            GoogleTranslatedText(
                translated_text=one.text,
                detected_language_code=one.source or UNKNOWN if is_detected else None,
                model=request.model,
            )
            for one in found
        ]
        if request.glossary_config is None:
            return GoogleTranslatedTexts(translations=translations)
        config = GoogleGlossaryConfig(glossary=request.glossary_config.glossary)
        by_glossary = [one.model_copy(update={"glossary_config": config}) for one in translations]
        return GoogleTranslatedTexts(translations=translations, glossary_translations=by_glossary)

    @router.post(f"{path}:detectLanguage")
    async def detect_language(request: GoogleContent, http: Request, parent: str) -> GoogleDetectedLanguages:  # noqa: ARG001
        """Detect the language of a text."""
        text_format = FORMATS.get(request.mime_type, "html")
        [ranked] = await detect_texts(models, CODES, [request.content], http.state.context, format=text_format)
        code, confidence = (ranked[0].language, ranked[0].confidence) if ranked else (UNKNOWN, 0)
        return GoogleDetectedLanguages(languages=[GoogleDetectedLanguage(language_code=code, confidence=confidence)])

    @router.post(f"{path}:translateDocument", response_model_exclude_none=True)
    async def translate_document(request: GoogleDocument, http: Request, parent: str) -> GoogleTranslatedDocument:  # noqa: ARG001
        """Translate a file."""
        file = request.document_input_config
        is_detected = not request.source_language_code
        native = validate(
            TranslateRequest,
            {
                "text": "-",
                "source": native_source(request.source_language_code, models.catalog.directions(None)),
                "target": native_target(request.target_language_code, models.catalog.directions(None)),
                "model": native_model(request.model),
                "glossary_id": request.glossary_id,
            },
        )
        data = decoded(file.content, "documentInputConfig.content")
        job, _, translated = await translated_file(
            backend, name_of_type(file.mime_type), data, native, http.state.context
        )
        return GoogleTranslatedDocument(
            document_translation=GoogleDocumentTranslation(
                byte_stream_outputs=[b64encode(translated).decode()],
                mime_type=file.mime_type,
                detected_language_code=CODES.name(job.source) if is_detected else None,
            ),
            model=request.model,
        )

    @router.get(f"{path}/supportedLanguages", response_model_exclude_none=True)
    async def supported_languages(http: Request, parent: str) -> GoogleSupportedLanguages:  # noqa: ARG001
        """List the languages; with `displayLanguageCode`, their names in that language."""
        reader = (await fields_of(http)).get("displayLanguageCode")
        listed = [
            GoogleSupportedLanguage(
                language_code=code,
                display_name=name_in(reader, code) if isinstance(reader, str) else None,
                support_source=use.is_source,
                support_target=use.is_target,
            )
            for code, use in CODES.listed(models.catalog.directions(None)).items()
        ]
        return GoogleSupportedLanguages(languages=listed)

    @router.get(f"{path}/glossaries", response_model_exclude_none=True)
    async def list_glossaries(_: Request, parent: str) -> GoogleGlossaries:
        """List the stored glossaries."""
        found = await in_thread(glossaries.all)
        return GoogleGlossaries(glossaries=[_described(one, parent) for one in found])

    @router.get(f"{path}/glossaries/{{glossary_id}}", response_model_exclude_none=True)
    async def get_glossary(_: Request, parent: str, glossary_id: str) -> GoogleGlossary:
        """Describe a stored glossary."""
        return _described(await in_thread(glossaries.get, glossary_id), parent)


def _described(glossary: Glossary, parent: str) -> GoogleGlossary:
    made_at = f"{glossary.created_at:%Y-%m-%dT%H:%M:%SZ}"
    pairs = [(CODES.name(one.source), CODES.name(one.target)) for one in glossary.dictionaries]
    languages: dict[str, Any] = {}
    if len(pairs) == 1:
        [(source, target)] = pairs
        languages["language_pair"] = GoogleLanguagePair(source_language_code=source, target_language_code=target)
    elif pairs:
        languages["language_codes_set"] = GoogleLanguageCodes(
            language_codes=sorted({c for pair in pairs for c in pair})
        )
    return GoogleGlossary(
        name=f"projects/{parent}/glossaries/{glossary.id}",
        display_name=glossary.name,
        entry_count=sum(one.n_entries for one in glossary.dictionaries),
        submit_time=made_at,
        end_time=made_at,
        **languages,
    )
