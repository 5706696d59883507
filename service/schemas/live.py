"""The messages of live translation."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field

from service.base.errors import UnsupportedOption
from service.schemas.requests import TranslateRequest, TranslationOptions, valid_unicode


class LiveUpdate(TranslationOptions):
    """A message at /translate/live: a text as far as it has come. Options begin a new text, and hold until
    others come."""

    text: Annotated[str, AfterValidator(valid_unicode)] = Field(
        description="The whole text so far. A word at its end is complete if white space or punctuation follows."
    )
    final: bool = Field(default=False, description="Whether the text is complete. The next message begins a new one.")
    model: str | None = Field(default=None, min_length=1, description="A name from /models.")
    timeout_s: float | None = Field(default=None, gt=0, description="Seconds until an update is given up with 504.")
    key: str | None = Field(
        default=None, min_length=1, description="The API key, for browsers, whose WebSockets send no header."
    )

    @property
    def is_partial(self) -> bool:
        """Whether a newer message makes this one needless."""
        return not self.final and not self._names_of_options

    @property
    def _names_of_options(self) -> set[str]:
        return self.model_fields_set - {"text", "final", "key"}

    def options(self) -> TranslateRequest | None:
        """Return a request with the options, and any text; None if the message has none. Raises UnsupportedOption."""
        options = self.model_dump(include=self._names_of_options, exclude_unset=True)
        for name in ("memory_id", "confidence"):
            if options.get(name):
                raise UnsupportedOption(f"`{name}` is not supported while a text is written")
        return TranslateRequest(text=["-"], **options) if options else None


class LiveAnswer(BaseModel):
    """A message from /translate/live. Both parts together are the translation so far."""

    update: int = Field(description="The number of the message that it answers, from 1.")
    concluded: str = Field(description="The beginning of the translation, which later answers repeat and go on from.")
    tentative: str = Field(description="What follows, as long as nothing else is found. It may change.")
    final: bool = Field(description="Whether the text is complete, and all of the translation is concluded.")
