"""Google Translation, version 3: the REST form of its gRPC interface."""

from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import Field

from service.access.guards import requester_of
from service.base.errors import InvalidFields
from service.dialects.google.codes import CODES, UNKNOWN, native_model
from service.dialects.shared.fields import CamelRequest, Refused
from service.dialects.shared.files import name_of_type, translated_content
from service.dialects.shared.texts import detect_texts, translate_texts
from service.glossaries.store import Glossary
from service.http.bodies import fields_of
from service.http.dialect import Backend
from service.storage.database_threads import in_thread
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
    def native_options(self) -> dict[str, Any]:
        """Fields of the native request. Raises InvalidFields: a glossary is named, but no source."""
        if self.glossary_config is not None and not self.source_language_code:
            raise InvalidFields([(("sourceLanguageCode",), "is required with a glossary")])
        glossary_id = self.glossary_config.glossary.rpartition("/")[2] if self.glossary_config else None
        return {"model": native_model(self.model), "glossary_id": glossary_id}


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


Answer = dict[str, Any]
"""As Google's reference describes it."""


def add_v3(router: APIRouter, path: str, backend: Backend) -> None:
    """Add the routes of version 3. `path` names a project and maybe a location; these names are taken and mean
    nothing."""
    models, glossaries = backend.models, backend.stores.glossaries

    @router.post(f"{path}:translateText")
    async def translate_text(request: GoogleContents, http: Request, parent: str) -> Answer:  # noqa: ARG001
        """Translate texts, as HTML unless `mimeType` is text/plain."""
        pair = request.source_language_code, request.target_language_code
        options = {"format": FORMATS.get(request.mime_type, "html"), **request.native_options}
        translated = await translate_texts(models, CODES, request.contents, *pair, http.state.context, **options)
        named = {"model": request.model} if request.model else {}
        translations = [
            {"translatedText": text.text}
            | ({} if request.source_language_code else {"detectedLanguageCode": text.source or UNKNOWN})
            | named
            for text in translated
        ]
        if request.glossary_config is None:
            return {"translations": translations}
        config = {"glossaryConfig": {"glossary": request.glossary_config.glossary}}
        with_glossary = [translation | config for translation in translations]
        return {"translations": translations, "glossaryTranslations": with_glossary}

    @router.post(f"{path}:detectLanguage")
    async def detect_language(request: GoogleContent, http: Request, parent: str) -> Answer:  # noqa: ARG001
        """Detect the language of a text."""
        text_format = FORMATS.get(request.mime_type, "html")
        [ranked] = await detect_texts(models, CODES, [request.content], http.state.context, format=text_format)
        code, confidence = (ranked[0].language, ranked[0].confidence) if ranked else (UNKNOWN, 0)
        return {"languages": [{"languageCode": code, "confidence": confidence}]}

    @router.post(f"{path}:translateDocument")
    async def translate_document(request: GoogleDocument, http: Request, parent: str) -> Answer:  # noqa: ARG001
        """Translate a file."""
        file, options = request.document_input_config, request.native_options
        field, pair = "documentInputConfig.content", (request.source_language_code, request.target_language_code)
        source, content = await translated_content(
            backend, field, file.content, name_of_type(file.mime_type), *pair, http.state.context, **options
        )
        translation: Answer = {"byteStreamOutputs": [content], "mimeType": file.mime_type}
        if not request.source_language_code:
            translation["detectedLanguageCode"] = CODES.name(source)
        return {"documentTranslation": translation}

    @router.get(f"{path}/supportedLanguages")
    async def supported_languages(http: Request, parent: str) -> Answer:  # noqa: ARG001
        """List the languages; with `displayLanguageCode`, their names in that language."""
        reader = str((await fields_of(http)).get("displayLanguageCode") or "")
        listed = [
            {"languageCode": code, "supportSource": use.is_source, "supportTarget": use.is_target}
            | ({"displayName": name_in(reader, code)} if reader else {})
            for code, use in CODES.listed(models.catalog.directions(None)).items()
        ]
        return {"languages": listed}

    @router.get(f"{path}/glossaries")
    async def list_glossaries(http: Request, parent: str) -> Answer:
        """List the stored glossaries."""
        stored = await in_thread(glossaries.all, requester_of(http))
        return {"glossaries": [_described(glossary, parent) for glossary in stored]}

    @router.get(f"{path}/glossaries/{{glossary_id}}")
    async def get_glossary(http: Request, parent: str, glossary_id: str) -> Answer:
        """Describe a stored glossary."""
        return _described(await in_thread(glossaries.get, requester_of(http), glossary_id), parent)


def _described(glossary: Glossary, parent: str) -> Answer:
    made_at = f"{glossary.created_at:%Y-%m-%dT%H:%M:%SZ}"
    pairs = [(CODES.name(terms.source), CODES.name(terms.target)) for terms in glossary.dictionaries]
    languages: Answer = {"languageCodesSet": {"languageCodes": sorted({code for pair in pairs for code in pair})}}
    if len(pairs) == 1:
        [(source, target)] = pairs
        languages = {"languagePair": {"sourceLanguageCode": source, "targetLanguageCode": target}}
    return languages | {
        "name": f"projects/{parent}/glossaries/{glossary.id}",
        "displayName": glossary.name,
        "entryCount": sum(dictionary.n_entries for dictionary in glossary.dictionaries),
        "submitTime": made_at,
        "endTime": made_at,
    }
