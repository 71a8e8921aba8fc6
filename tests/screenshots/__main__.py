"""`make screenshots`: starts everything, signs in, takes the pictures, and leaves nothing running."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import get_args

from playwright.async_api import Browser
from playwright.async_api import Error as PlaywrightError
from rich.console import Console

from switchboard.runners.node import ROOT
from tests.screenshots.pages import SHOTS, Shot
from tests.screenshots.scene import PROXIES, SETTINGS, Scene, set_scene
from tests.support import browser as harness
from tests.support.browser import ChromiumMissing, Look, Visit, find_chromium, launched, visiting
from tests.support.premises import API_KEY
from tests.support.real_installation import real_installation

LOOKS = tuple(
    Look(*one) for one in product(get_args(harness.Language), get_args(harness.Scheme), get_args(harness.Device))
)
_DRAWN = "() => document.fonts.ready.then(() => new Promise(done => requestAnimationFrame(() => setTimeout(done, 0))))"


class Photographer:
    """Takes the pictures of one scene, and keeps what was wrong with them."""

    def __init__(self, browser: Browser, url: str, scene: Scene, out: Path, *, whole: bool) -> None:
        self._browser = browser
        self._url = url
        self._scene = scene
        self._out = out
        self._whole = whole
        self.faults: list[str] = []

    async def take(self, look: Look, shots: Sequence[Shot]) -> None:
        for secret in (None, API_KEY):
            mine = [shot for shot in shots if shot.signed_in == (secret is not None)]
            if not mine:
                continue
            async with visiting(self._browser, self._url, look, secret=secret) as visit:
                for shot in mine:
                    await self._shoot(visit, shot)

    async def _shoot(self, visit: Visit, shot: Shot) -> None:
        name = f"{shot.name}-{visit.look}"
        try:
            if (await visit.go(self._scene.path(shot.path))).ok:
                if shot.prepare is not None:
                    await shot.prepare(visit)
                await visit.page.evaluate(_DRAWN)
                await visit.page.screenshot(path=self._out / f"{name}.png", full_page=self._whole)
        except PlaywrightError as error:
            visit.problems.found.append(error.message.partition("\n")[0])
        if visit.problems.found:
            self.faults.append(f"{name}: {'; '.join(visit.problems.found)}")
            visit.problems.found.clear()


async def main(shots: Sequence[Shot], looks: Sequence[Look], out: Path, *, whole: bool) -> int:
    """How many pages could not be photographed, or went wrong while they were."""
    say = Console(highlight=False, soft_wrap=True, markup=False).print
    program = find_chromium()
    out.mkdir(parents=True, exist_ok=True)
    say("==> setting the scene: Switchboard, its workers and a simulated WhatsApp (about half a minute)")
    async with real_installation(PROXIES, start=True, **SETTINGS) as it:
        scene = await set_scene(it)
        async with launched(program) as browser:
            photographer = Photographer(browser, it.url, scene, out, whole=whole)
            for look in looks:
                say(f"==> photographing {look}")
                await photographer.take(look, shots)
    for fault in photographer.faults:
        say(fault)
    wanted = len(shots) * len(looks)
    say(f"==> {wanted - len(photographer.faults)} of {wanted} pages are fine; their pictures are in {out}")
    return len(photographer.faults)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.screenshots", description=__doc__)
    parser.add_argument("--only", action="append", choices=[shot.name for shot in SHOTS], help="only this page (again)")
    parser.add_argument("--look", action="append", choices=list(map(str, LOOKS)), help="only this look (again)")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images" / "dashboard", help="the folder")
    parser.add_argument("--whole", action="store_true", help="whole pages, not only what fits the screen")
    return parser.parse_args()


if __name__ == "__main__":
    asked = _asked()
    some_shots = [shot for shot in SHOTS if shot.name in (asked.only or shot.name)]
    some_looks = [look for look in LOOKS if str(look) in (asked.look or str(look))]
    try:
        sys.exit(min(1, asyncio.run(main(some_shots, some_looks, asked.out, whole=asked.whole))))
    except ChromiumMissing as missing:
        sys.exit(str(missing))
