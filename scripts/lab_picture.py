"""Takes README's picture of the lab: `python scripts/lab_picture.py` writes docs/assets/lab-*.png, light and dark.

A bundled run as `gcdformer lab RUN --export PAGE --single-file` writes it, photographed by Chromium: its epoch slider, the
grid of f(k), and D. Needs the extra `dev`.
"""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from gcdformer.lab.catalogue import GROKKING
from gcdformer.lab.export import export_single_file

ASSETS = Path(__file__).parent.parent / "docs" / "assets"
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
WIDTH, HEIGHT, SCALE = 1140, 812, 1.5
COLOURS = 256
"""In the picture's palette: the page has few, and the file stays small."""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        page_file = export_single_file([GROKKING], Path(folder) / "page.html")
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme,
                                    device_scale_factor=SCALE, reduced_motion="reduce")
            page.goto(f"{page_file.as_uri()}#/run/example-grokking?k=24")
            page.wait_for_selector("body[data-ready=run]")
            page.evaluate("""() => {
                const top = document.querySelector(".pair.three").getBoundingClientRect().top;
                scrollBy({ top: top - document.querySelector(".player").offsetHeight - 8, behavior: "instant" });
            }""")
            picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            picture.quantize(COLOURS, dither=Image.Dither.NONE).save(ASSETS / f"lab-{scheme}.png", optimize=True)
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
