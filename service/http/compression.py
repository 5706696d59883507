"""Answers, compressed for clients that ask for it."""

import asyncio
import gzip
import re
from collections.abc import Mapping

from fastapi import Request, Response

LEAST_BYTES = 4096
"""A smaller answer is sent as it is."""

IN_A_THREAD = 131_072
"""Bytes, from which on compression would hold up other requests for more than a millisecond or two."""

LEVEL = 1
"""Level 6 takes four times as long, and makes embeddings and attention a tenth smaller than this."""

GZIP = re.compile(r"(?:^|,)\s*(gzip|\*)\s*(?:;\s*q=(\d(?:\.\d*)?)\s*)?(?=,|$)", re.IGNORECASE)


async def answer(
    content: bytes, request: Request, media_type: str, headers: Mapping[str, str] | None = None
) -> Response:
    """With this content, compressed if that is worth it and the client asks for it."""
    response = Response(content, headers=headers, media_type=media_type)
    if len(content) < LEAST_BYTES:
        return response
    response.headers["Vary"] = "Accept-Encoding"
    if takes_gzip(request):
        if len(content) < IN_A_THREAD:
            response.body = gzip.compress(content, LEVEL, mtime=0)
        else:
            response.body = await asyncio.to_thread(gzip.compress, content, LEVEL, mtime=0)
        response.headers["Content-Encoding"] = "gzip"
        response.headers["Content-Length"] = str(len(response.body))
    return response


def takes_gzip(request: Request) -> bool:
    """Whether a client asks for gzip, by name or among all encodings, and does not refuse it by q=0."""
    accepted = ",".join(request.headers.getlist("accept-encoding"))
    quality = {name.lower(): quality for name, quality in GZIP.findall(accepted)}
    return float(quality.get("gzip", quality.get("*", "0")) or 1) > 0
