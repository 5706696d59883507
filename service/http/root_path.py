"""Serve under a path of a proxy."""

from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send


class RootPath:
    """Removes the path of the service at a proxy, such as /attend, from requests, if the proxy has not done so."""

    def __init__(self, app: ASGIApp, root_path: str) -> None:
        self._app = app
        self._root_path = root_path
        self._raw = root_path.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            # The page's addresses are relative to a folder.
            if scope["type"] == "http" and scope["path"] == self._root_path:
                await RedirectResponse(f"{self._root_path}/")(scope, receive, send)
                return
            if scope["path"].startswith(f"{self._root_path}/"):
                path = scope["path"].removeprefix(self._root_path)
                scope = {**scope, "path": path, "raw_path": scope["raw_path"].removeprefix(self._raw)}
        await self._app(scope, receive, send)


def address_of(request: Request, root_path: str) -> str:
    """Return the address of the service as the client sees it, without a slash at its end."""
    return str(request.base_url).rstrip("/") + root_path
