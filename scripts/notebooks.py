"""Runs the notebooks and stores their outputs in them, so that they can be read where they are only shown: `make notebooks`,
or `python scripts/notebooks.py 2` for the second one alone.

Each carries a digest of its code, by which the tests see whether the outputs are those of this code. What would differ from
one run to the next is left out: counts, times, and the names of folders outside the one it is run in.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbclient
import nbformat

FOLDER = Path(__file__).parent.parent / "notebooks"
MOST_BYTES = 300_000
MINUTES = re.compile(r"<div><b>[\d.]+</b><span>minutes</span></div>")
TERMINAL = re.compile(r"\x1b\[[\d;]*[A-Za-z]|\r(?=\n)")
CELL_SECONDS = 3600


def digest(book: Any) -> str:
    """Of the code of all cells; text can change without the outputs."""
    code = "\0".join(cell.source for cell in book.cells if cell.cell_type == "code")
    return hashlib.sha256(code.encode()).hexdigest()


def run(book: Any, work: Path) -> None:
    """Run all cells in a folder of their own; `gcdformer` is the command of this interpreter."""
    commands = work / ".bin"
    commands.mkdir(parents=True)
    (commands / "gcdformer").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gcdformer "$@"\n')
    (commands / "gcdformer").chmod(0o755)
    environment = {**os.environ, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
                   "COLUMNS": "100", "IPYTHONDIR": str(work / ".ipython"), "JUPYTER_RUNTIME_DIR": str(work / ".runtime")}
    client = nbclient.NotebookClient(book, timeout=CELL_SECONDS, iopub_timeout=60, raise_on_iopub_timeout=True,
                                     coalesce_streams=True, kernel_name="python3",
                                     resources={"metadata": {"path": str(work)}})
    client.execute(env=environment)
    clean(book)


def clean(book: Any) -> None:
    """Take out what is not a result: counts, times, messages of libraries, colours of a terminal."""
    for cell in book.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
            for output in cell.outputs:
                if "execution_count" in output:
                    output.execution_count = None
                if "text" in output:
                    output.text = TERMINAL.sub("", output.text)
                if "text/html" in output.get("data", {}):
                    output.data["text/html"] = MINUTES.sub("", output.data["text/html"])
    book.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                     "language_info": {"name": "python"}, "gcdformer": {"code_sha256": digest(book)}}


def main(wanted: list[str]) -> None:
    for path in sorted(FOLDER.glob("*.ipynb")):
        if wanted and path.name.partition("-")[0] not in wanted:
            continue
        book = nbformat.read(path, as_version=4)
        with tempfile.TemporaryDirectory() as work:
            run(book, Path(work) / "work")
            text = nbformat.writes(book) + "\n"
            if work in text:
                raise SystemExit(f"{path.name}: its outputs name the folder it was run in")
        if len(text) > MOST_BYTES:
            raise SystemExit(f"{path.name}: {len(text):,} bytes with its outputs, more than {MOST_BYTES:,}")
        path.write_text(text, encoding="utf-8")
        print(f"{path.name}: {len(text):,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
