"""Draws how a bundled run learned, for docs/SPEED.md: `python scripts/sieve_picture.py` writes docs/assets/sieve-*.svg.

Which k the model answers correctly, epoch by epoch, with light and with dark ink; a page shows the one that fits its reader.
"""

from __future__ import annotations

from pathlib import Path

from gcdformer import Run
from gcdformer.display import figures
from gcdformer.display.style import with_values
from gcdformer.lab.catalogue import EXAMPLES

ASSETS = Path(__file__).parent.parent / "docs" / "assets"


def main() -> None:
    run = Run(EXAMPLES["example-grokking"].path)
    drawing = figures.to_svg(figures.raster(run.metrics), "Which k are correct at each epoch")
    for name in ("light", "dark"):
        lines = [line.rstrip() for line in with_values(drawing, dark=name == "dark").splitlines()]
        (ASSETS / f"sieve-{name}.svg").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
