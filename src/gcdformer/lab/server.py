"""The lab's web server: the page, and the JSON API under /api/ that it and notebooks use. Described at /api/openapi.json.

Only endpoints: what they send is made by summaries.py, views.py, decided.py, bands.py, places.py, ask.py,
paper.py and trainings.py.
"""

from __future__ import annotations

import hashlib
import json
import sys
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from fastapi import BackgroundTasks, FastAPI, Query, Request
from fastapi import Path as InPath
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.staticfiles import StaticFiles

from gcdformer.config import LARGEST_INTEGER
from gcdformer.display.style import COLOURS
from gcdformer.errors import DamagedFile, UserError
from gcdformer.lab.ask import Asked, Asker, Surprise
from gcdformer.lab.bands import Bands, BandsView
from gcdformer.lab.cache import Cache, stamp
from gcdformer.lab.catalogue import Catalogue, UnknownRun
from gcdformer.lab.decided import DecidedView, Decisions
from gcdformer.lab.network import Guard, is_loopback, listen, url_host
from gcdformer.lab.paper import PAGE, LedgerRun, Paper, PaperClaim, PaperTable
from gcdformer.lab.places import Flipped, MechanismView, flip_view, mechanism_view
from gcdformer.lab.schema import About, EpochDetails, Problem, RunDetails, Runs, RunView
from gcdformer.lab.summaries import Summaries, held_locks, is_live
from gcdformer.lab.trainings import CORES, Busy, StartedTraining, TrainingList, TrainingOrder, Trainings, UnknownTraining
from gcdformer.lab.views import epoch_view, run_view
from gcdformer.lab.weights import ModelView, full_file, model_view, model_weights
from gcdformer.runs.folder import RunFolder
from gcdformer.version import __version__

STATIC = Path(__file__).parent / "static"
CACHED_EPOCHS = 256
CACHED_RUNS = 32
OPEN_BROWSER_AFTER = 0.3
"""Seconds after which the server answers."""
WARM_UP_AFTER = 1.0
"""Seconds after the first view at which what would make a person wait is made in the background: torch and the model most
likely to be asked are loaded, the paper is compared with the ledger."""

REFUSALS: dict[int | str, dict[str, Any]] = {code: {"model": Problem, "description": text} for code, text in {
    400: "bad input", 403: "not allowed", 404: "no such run or training", 409: "busy", 422: "the run is damaged"}.items()}
WEIGHTS = "application/octet-stream"

RunId = Annotated[str, InPath(description="id of a run, as /api/runs gives it", min_length=1, max_length=300)]
Named = Annotated[str, InPath(description="as /api/paper and its tables name it", min_length=1, max_length=300)]
Epoch = Annotated[int, InPath(description="an evaluated epoch", ge=1, le=10**9)]
EpochWanted = Annotated[int, Query(description="an evaluated epoch", ge=1, le=10**9)]
Operand = Annotated[int, Query(description="an operand, 1..M", ge=1, le=LARGEST_INTEGER)]
WeightsEpoch = Annotated[int | None, Query(description="an epoch with weights; the newest if left out", ge=1, le=10**9)]

Prior = Annotated[str | None, Query(description="training, natural, uniform, ALPHA of k^-ALPHA; the run's own if left out",
                                    max_length=30)]
PriorWanted = Annotated[str, Query(description="training, natural, uniform, ALPHA of k^-ALPHA", max_length=30)]
Share = Annotated[float, Query(description="how far to go from the training's prior to that one", ge=0, le=1)]


def create_app(root: Path, *, host: str = "127.0.0.1", allow_training: bool = False) -> FastAPI:
    """The application for the runs below `root`."""
    catalogue = Catalogue(root)
    summaries, asker, bands, decisions = Summaries(catalogue), Asker(catalogue), Bands(), Decisions(catalogue)
    trainings = Trainings(root) if allow_training else None
    epochs: Cache[EpochDetails] = Cache(CACHED_EPOCHS)
    views: Cache[RunView] = Cache(CACHED_RUNS)

    def make_ready(run: str) -> None:
        asker.warm_up(run)
        PAGE.get()

    ready = WarmUp(make_ready)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        ready.cancel()
        decisions.close()
        if trainings is not None:
            trainings.close()

    app = FastAPI(title="gcdformer lab", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None,
                  openapi_url="/api/openapi.json", responses=REFUSALS,
                  description="Runs, their epochs, and questions to their models. Accuracy is percent; shares are 0..1.")
    add_errors(app)
    app.add_middleware(GZipMiddleware, minimum_size=2000, compresslevel=4)
    app.add_middleware(Guard, host=host)

    @app.get("/api/about", response_model=About, summary="Version, and what this server allows")
    def about() -> About:
        return {"version": __version__, "training": trainings is not None, "asking": True, "cores": CORES,
                "folder": str(root)}

    @app.get("/api/runs", response_model=Runs,
             summary="All runs: what each is, its last evaluation, a small curve, whether it is being trained")
    def runs(request: Request, after: BackgroundTasks) -> Response:
        listed = summaries.all()
        if listed:
            after.add_task(ready.after_view, max(listed, key=lambda summary: summary["changed"])["id"])
        return tagged(request, {"runs": listed})

    @app.get("/api/runs/{run}", response_model=RunDetails,
             summary="A run: every evaluation in short, D by epoch, the timeline, epochs with weights")
    def run(request: Request, run: RunId, after: BackgroundTasks) -> Response:
        entry = catalogue.find(run)
        after.add_task(ready.after_view, entry.id)
        live = is_live(entry.path, held_locks())
        stamps = tuple(stamp(entry.path / name) for name in ("config.toml", "metrics.jsonl", "checkpoints"))
        view = views.get((entry.path, stamps), lambda: run_view(catalogue, entry))
        return tagged(request, {**view, "live": live})

    @app.get("/api/runs/{run}/epochs/{epoch}", response_model=EpochDetails,
             summary="An epoch: f(k), the heat map, the rules with every exception")
    def epoch(request: Request, run: RunId, epoch: Epoch) -> Response:
        entry = catalogue.find(run)
        key = entry.path, epoch, stamp(RunFolder(entry.path).predictions_path(epoch))
        return tagged(request, epochs.get(key, lambda: epoch_view(catalogue, entry, epoch)))

    @app.get("/api/runs/{run}/decided", response_model=DecidedView,
             summary="An epoch decided under another prior; the model is asked, so ask again until it is done")
    def decided(request: Request, run: RunId, epoch: EpochWanted, prior: PriorWanted) -> Response:
        return tagged(request, decisions.get(catalogue.find(run), epoch, prior))

    @app.get("/api/runs/{run}/bands", response_model=BandsView,
             summary="An epoch's certificate by bands of size and order; the model is asked, which takes seconds")
    def run_bands(request: Request, run: RunId, epoch: EpochWanted) -> Response:
        return tagged(request, bands.get(catalogue.find(run), epoch))

    @app.get("/api/runs/{run}/mechanism", response_model=MechanismView,
             summary="Which places of the network carry each learned prime, as `gcdformer mechanism` found")
    def mechanism(request: Request, run: RunId) -> Response:
        return tagged(request, mechanism_view(catalogue.find(run)))

    @app.get("/api/runs/{run}/flip", response_model=Flipped,
             summary="Flip divisibility of a by a learned prime inside the network: what the rules predict, what comes out")
    def flip(run: RunId, p: Operand, a: Operand, b: Operand) -> Flipped:
        return flip_view(catalogue.find(run), p, a, b)

    @app.get("/api/runs/{run}/ask", response_model=Asked,
             summary="Ask the model for GCD(a, b): tokens, distributions, prediction, truth, reason")
    def ask(run: RunId, a: Operand, b: Operand, epoch: WeightsEpoch = None, prior: Prior = None,
            share: Share = 1.0) -> Asked:
        return asker.ask(catalogue.find(run), a, b, epoch, prior, share)

    @app.get("/api/runs/{run}/surprise", response_model=Surprise,
             summary="A pair on which the model disagrees with its own rules, if one is known")
    def surprise(run: RunId, epoch: WeightsEpoch = None) -> Surprise:
        return asker.surprise(catalogue.find(run), epoch)

    @app.get("/api/runs/{run}/model", response_model=ModelView,
             summary="What a page needs, beside the weights, to ask the model by itself")
    def model(request: Request, run: RunId, epoch: WeightsEpoch = None) -> Response:
        entry = catalogue.find(run)
        return tagged(request, model_view(catalogue, entry, asker.epoch_with_weights(entry, epoch)))

    @app.get("/api/runs/{run}/weights", response_class=Response,
             summary="The weights of a checkpoint that answer questions: a safetensors file, float32",
             responses={200: {"content": {WEIGHTS: {"schema": {"type": "string", "format": "binary"}}}}})
    def weights(run: RunId, epoch: WeightsEpoch = None) -> Response:
        entry = catalogue.find(run)
        file = full_file(model_weights(catalogue, entry, asker.epoch_with_weights(entry, epoch)))
        return Response(file, media_type=WEIGHTS, headers={"Cache-Control": "no-cache"})

    add_paper(app)
    add_training(app, trainings)

    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(STATIC / "index.html", headers={"Cache-Control": "no-cache"})

    @app.get("/static/colours.css", include_in_schema=False)
    def colours() -> FileResponse:
        return FileResponse(COLOURS)

    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    return app


def serve(root: Path, *, host: str, port: int | None, open_browser: bool, allow_training: bool) -> None:
    """Serve until Ctrl-C or SIGTERM. The socket is bound before its address is printed."""
    app = create_app(root, host=host, allow_training=allow_training)
    with listen(host, port) as listener:
        url = f"http://{url_host(host)}:{listener.getsockname()[1]}/"
        where = "" if is_loopback(host) else f"listening on {host}; "
        print(f"lab  {url}   ({where}Ctrl-C to close)", flush=True)
        if not Catalogue(root).has_runs():
            print(f"no runs in {root} yet: showing the bundled examples", flush=True)
        if not is_loopback(host):
            more = ", ask their models and start trainings" if allow_training else " and ask their models"
            print(f"caution: anyone on the network can read these runs{more}", file=sys.stderr, flush=True)
        if open_browser:
            threading.Timer(OPEN_BROWSER_AFTER, webbrowser.open, [url]).start()
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, server_header=False,
                                               timeout_graceful_shutdown=3))
        server.run(sockets=[listener])


class WarmUp:
    """Calls `make_ready` once, a while after the first view, with the run that was seen last by then."""

    def __init__(self, make_ready: Callable[[str], None]) -> None:
        self._make_ready = make_ready
        self._lock = threading.Lock()
        self._seen: str | None = None
        self._timer = threading.Timer(WARM_UP_AFTER, self.begin)
        self._timer.daemon = True

    def after_view(self, run: str) -> None:
        with self._lock:
            first, self._seen = self._seen is None, run
            if first:
                self._timer.start()

    def begin(self) -> None:
        assert self._seen is not None
        self._make_ready(self._seen)

    def cancel(self) -> None:
        self._timer.cancel()


def add_paper(app: FastAPI) -> None:
    """The paper beside the ledger: an index first, then one part at a time."""
    @app.get("/api/paper", response_model=Paper,
             summary="The paper's claims with their verdicts; its tables and figures with how many values agree")
    def paper(request: Request) -> Response:
        return tagged(request, PAGE.get().index())

    @app.get("/api/paper/tables/{table}", response_model=PaperTable,
             summary="A table or figure of the paper by number (table-2, figure-1) or name, published values beside ours")
    def paper_table(request: Request, table: Named) -> Response:
        return tagged(request, PAGE.get().table(table))

    @app.get("/api/paper/claims/{claim}", response_model=PaperClaim, summary="A claim of the paper with its evidence")
    def paper_claim(request: Request, claim: Named) -> Response:
        return tagged(request, PAGE.get().claim(claim))

    @app.get("/api/paper/runs/{run}", response_model=LedgerRun,
             summary="A run of the ledger: its curve, D by epoch, f(k) and the rules at its last epoch")
    def ledger_run(request: Request, run: Named) -> Response:
        return tagged(request, PAGE.get().run(run))


def add_training(app: FastAPI, trainings: Trainings | None) -> None:
    """Start, list and stop trainings; refused unless the server was started with --allow-training."""
    def allowed() -> Trainings:
        if trainings is None:
            raise HTTPException(403, "training: off; start the lab with --allow-training")
        return trainings

    @app.get("/api/trainings", response_model=TrainingList, summary="Trainings started from this page, newest first")
    def listed() -> TrainingList:
        return {"trainings": allowed().reports()}

    @app.post("/api/trainings", response_model=StartedTraining, status_code=201,
              summary="Start a training, an ordinary run folder")
    def start(order: TrainingOrder) -> StartedTraining:
        return allowed().start(order)

    @app.delete("/api/trainings/{run}", response_model=StartedTraining,
                summary="Stop a training; it saves and can be resumed")
    def stop(run: RunId) -> StartedTraining:
        return allowed().stop(run)


def add_errors(app: FastAPI) -> None:
    """Every refusal is {"error": one line}."""
    def user_error(request: Request, error: Exception) -> JSONResponse:
        code = (404 if isinstance(error, UnknownRun | UnknownTraining) else 409 if isinstance(error, Busy)
                else 422 if isinstance(error, DamagedFile) else 400)
        return JSONResponse({"error": " ".join(str(error).split()), "damaged": isinstance(error, DamagedFile)}, code)

    def http_error(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        return JSONResponse({"error": str(error.detail)}, error.status_code, headers=error.headers)

    def invalid(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        return JSONResponse({"error": f"{'.'.join(map(str, first['loc'][1:])) or 'body'}: {first['msg']}"}, 400)

    app.add_exception_handler(UserError, user_error)
    app.add_exception_handler(HTTPException, http_error)
    app.add_exception_handler(RequestValidationError, invalid)


def tagged(request: Request, value: Mapping[str, object]) -> Response:
    """JSON with an ETag, so that asking again costs nothing while nothing has changed."""
    body = json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    tag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/json", headers=headers)
