"""What one request may ask for."""

from service.base.errors import InvalidFields, TextTooLong, TooManyTexts
from service.base.settings import Settings
from service.schemas.requests import ClassifyRequest, DetectRequest, EmbedRequest, TranslateRequest


def within_limits(
    request: TranslateRequest | DetectRequest | ClassifyRequest | EmbedRequest, settings: Settings
) -> float:
    """Refuse a request that is too large; the seconds that it may take.

    Raises:
        TextTooLong: a text is.
        TooManyTexts, InvalidFields: there are too many texts, or too many seconds.
    """
    longest = max(len(text) for text in request.text)
    if longest > settings.max_text_characters:
        raise TextTooLong(f"A text has {longest} characters; the limit is {settings.max_text_characters}")
    if len(request.text) > settings.max_texts:
        raise TooManyTexts(f"The request has {len(request.text)} texts; the limit is {settings.max_texts}")
    timeout_s = request.timeout_s or min(settings.default_timeout_s, settings.max_timeout_s)
    if timeout_s > settings.max_timeout_s:
        raise InvalidFields([(("timeout_s",), f"must be at most {settings.max_timeout_s:g}, not {timeout_s:g}")])
    return timeout_s
