"""The files that browsers fetch once: scripts, styles, fonts. Built by `make node`, named by what is in them."""

import hashlib
from functools import cached_property
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse

from switchboard.domain.errors import NotFound

_FOLDER = Path(__file__).parent / "static"
_FOR_EVER = "public, max-age=31536000, immutable"


class Static:
    def __init__(self, folder: Path = _FOLDER) -> None:
        self._folder = folder

    @cached_property
    def _files(self) -> dict[str, Path]:
        return {
            path.relative_to(self._folder).as_posix(): path
            for path in sorted(self._folder.rglob("*"))
            if path.is_file()
        }

    @cached_property
    def version(self) -> str:
        """Changes with any of the files: then all are fetched anew, and modules find each other beside themselves."""
        seen = hashlib.sha256()
        for name, path in self._files.items():
            seen.update(name.encode() + path.read_bytes())
        return seen.hexdigest()[:12]

    def url(self, name: str) -> str:
        return f"/static/{self.version}/{name}"

    def routes(self) -> APIRouter:
        router = APIRouter(include_in_schema=False)

        @router.get("/static/{version}/{name:path}")
        async def file(request: Request, version: str, name: str) -> Response:
            path = self._files.get(name)
            if path is None:
                raise NotFound(f"There is no file '{name}' here.")
            fresh = version == self.version
            headers = {"Cache-Control": _FOR_EVER if fresh else "no-store", "X-Content-Type-Options": "nosniff"}
            return FileResponse(path, headers=headers)

        @router.get("/favicon.ico")
        async def icon() -> Response:
            return FileResponse(self._folder / "css" / "icon.svg", media_type="image/svg+xml")

        return router
