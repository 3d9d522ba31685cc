"""Modules as one script: what it means stays the same, what it does not know is refused, and it runs from a file."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save

from browser_models import STATIC, case_of, questions
from gcdformer.lab.bundle import bundle
from gcdformer.lab.weights import half_weights
from gcdformer.models import generate
from lab_browser import Tab, needs_browser, open_browser, open_tab  # noqa: F401 - fixtures

MODULES = {
    "app.js": 'import {\n  twice as double,\n  Shape,\n} from "./lib/maths.js";\nimport { base } from "./lib/base.js";\n\n'
              "const hidden = base + 1;\nexport const answer = double(hidden) + new Shape().sides;\n",
    "lib/maths.js": 'import { base } from "./base.js";\nconst hidden = 2;\n'
                    "export function twice(x) {\n  return hidden * x;\n}\n"
                    "class Square {\n  sides = base;\n}\nexport { Square as Shape };\n",
    "lib/base.js": "// A constant.\nexport const base = 4;\n",
}


def write(folder: Path, modules: dict[str, str]) -> Path:
    for name, text in modules.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(("changes", "words"), [
    ({"lib/base.js": 'import { answer } from "../app.js";\n'}, "imports itself, by way of app.js, maths.js, base.js"),
    ({"lib/base.js": "export default 4;\n"}, "cannot be bundled because of 'export default 4;'"),
    ({"lib/base.js": "export let base = 4;\n"}, "cannot be bundled because of 'export let base = 4;'"),
    ({"lib/base.js": 'import * as all from "./x.js";\n'}, "cannot be bundled because of 'import \\* as all"),
    ({"lib/base.js": "const x = import('./x.js');\n"}, "cannot be bundled because of 'import"),
    ({"lib/base.js": "await fetch('x');\n"}, "cannot be bundled because of 'await"),
    ({"lib/base.js": "export const base = '</script>';\n"}, "cannot be bundled because of '</script>"),
])
def test_other_forms_are_refused(changes: dict[str, str], words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"(base|app).js: {words}"):
        bundle(write(tmp_path, MODULES | changes), "app.js")


@needs_browser
@pytest.mark.processes
def test_names_and_scopes_stay_what_they_are(tmp_path: Path, tab: Tab) -> None:
    script = bundle(write(tmp_path, MODULES), "app.js")
    assert script.count("A constant.") == 1
    assert tab.page.evaluate(f"() => {{ {script}\nreturn module_app.answer; }}") == 14


@needs_browser
@pytest.mark.processes
def test_the_whole_page_can_be_bundled(tab: Tab) -> None:
    tab.page.evaluate("(script) => { new Function(script); }", bundle(STATIC, "app.js"))


@needs_browser
@pytest.mark.processes
def test_a_single_file_answers_by_itself(tmp_path: Path, tab: Tab) -> None:
    """Weights in half precision as base64 in the page, a policy that allows its one script by hash and no connection."""
    case = case_of("transformer", 30)
    case.model.half().float()
    (tmp_path / "model.safetensors").write_bytes(save(case.model.state_dict()))
    model = {"config": json.loads(case.config.model_dump_json()),
             "weights": base64.b64encode(half_weights(tmp_path / "model.safetensors")).decode()}
    pairs = questions(case.problem, 30)
    script = bundle(STATIC, "model/model.js") + """
const { config, weights } = JSON.parse(document.getElementById("model").textContent);
const bytes = Uint8Array.from(atob(weights), (letter) => letter.charCodeAt(0));
const model = module_model_model.loadModel({ weights: bytes.buffer, config });
window.answers = (pairs) => model.answers(pairs);
document.body.dataset.ready = "";
"""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    data = json.dumps(model).replace("<", "\\u003c")
    page = tmp_path / "page.html"
    page.write_text(f"""<!doctype html><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-{digest}'; img-src data:">
<title>model</title><link rel="icon" href="data:,">
<body>model<script type="application/json" id="model">{data}</script>
<script type="module">{script}</script>""")
    tab.open(page.as_uri())
    found: list[Any] = tab.page.evaluate("(pairs) => answers(pairs)", pairs.tolist())
    tokens = generate(case.model, torch.from_numpy(case.problem.encode_questions(pairs)[0]), case.problem.longest_target)
    values, readable = case.problem.decode_answers(tokens.numpy())
    assert found == [int(value) if known else None for value, known in zip(values[:, 0], readable, strict=True)]
    assert np.count_nonzero(readable) > 5
    assert [url for url in tab.fetched if not url.startswith(("about:", "data:"))] == [page.as_uri()]
