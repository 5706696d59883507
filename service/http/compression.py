"""Compress responses with gzip if the client accepts it."""

import asyncio
import gzip
import re
from collections.abc import Mapping

from fastapi import Request, Response

MIN_COMPRESSED_BYTES = 4096
"""Smaller content is sent uncompressed."""
MIN_THREAD_BYTES = 131_072
"""Larger content is compressed in a thread: it would block the event loop for more than a millisecond."""
LEVEL = 1
"""Level 6 takes four times as long, and makes embeddings and attention only a tenth smaller."""
GZIP = re.compile(r"(?:^|,)\s*(gzip|\*)\s*(?:;\s*q=(\d(?:\.\d*)?)\s*)?(?=,|$)", re.IGNORECASE)


async def compressed_response(
    content: bytes, request: Request, media_type: str, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a response with this content, compressed if it is large and the client accepts gzip."""
    if len(content) >= MIN_COMPRESSED_BYTES:
        headers = {**(headers or {}), "Vary": "Accept-Encoding"}
        if accepts_gzip(request):
            headers["Content-Encoding"] = "gzip"
            if len(content) < MIN_THREAD_BYTES:
                content = gzip.compress(content, LEVEL, mtime=0)
            else:
                content = await asyncio.to_thread(gzip.compress, content, LEVEL, mtime=0)
    return Response(content, headers=headers, media_type=media_type)


def accepts_gzip(request: Request) -> bool:
    """Return whether the client accepts gzip, by name or by `*`, with a quality above 0."""
    accepted = ",".join(request.headers.getlist("accept-encoding"))
    quality = {name.lower(): quality for name, quality in GZIP.findall(accepted)}
    return float(quality.get("gzip", quality.get("*", "0")) or 1) > 0
