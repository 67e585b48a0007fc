"""A small web service that flags accounts, and says how many links an attacker would have to forge to change that.

    pip install 'unswayed[examples]'
    cd examples/service && uvicorn app:app

GET  /health                                             what answers, and since when; 503 where an audit refuses the service
POST /label   {"nodes": [3, 17]}                         a label, or null where the service abstains
POST /certify {"nodes": [3]}                             the label and K: no K changes of the account's links change it
POST /arrive  {"x": [[…]], "neighbours": [[3, 9]]}       the same for an account that is not in the graph yet

SERVICE_FOLDER (default "service") keeps the weights and the service across restarts; SERVICE_KIND is "smoothed" or "ballots".
"""

import json
import logging
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import torch
from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from torch_geometric.data import Data
from torch_geometric.nn import GraphSAGE
from torch_geometric.utils import to_undirected

import unswayed as us
from unswayed.errors import InputError, RefusedVotes

log = logging.getLogger("service")
FEATURES, CLASSES, NAMES = 8, 2, ("fine", "fraud")
NOISE = us.AddDelete(p_add=0.01, p_delete=0.6)  # 1,000 unanimous votes prove K = 3 with it


def accounts(number: int = 400, seed: int = 0) -> Data:
    """A made-up graph in which frauds link to frauds: replace it by yours."""
    rng = torch.Generator().manual_seed(seed)
    y = (torch.rand(number, generator=rng) < 0.3).long()
    first, second = torch.randint(0, number, (2, 12 * number), generator=rng)
    keep = (first != second) & ((y[first] == y[second]) | (torch.rand(len(first), generator=rng) < 0.1))
    x = torch.randn(number, FEATURES, generator=rng) + 0.7 * y[:, None]
    edges = to_undirected(torch.stack([first[keep], second[keep]]), num_nodes=number)
    return Data(x=x, edge_index=edges, y=y)


def trained(data: Data) -> torch.nn.Module:
    """A two-layer SAGE that has learnt the labels: replace it by yours."""
    torch.manual_seed(0)
    model = GraphSAGE(FEATURES, 16, 2, CLASSES)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(60):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(data.x, data.edge_index), data.y).backward()
        optimiser.step()
    return model.eval()


def opened(folder: Path, kind: str) -> us.Smoothed:
    """The service as it was saved; trained, checked, audited and saved the first time."""
    data, saved = accounts(), folder / f"{kind}.npz"
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "ballots":
        model: Any = us.LabelBallots(CLASSES).freeze(
            data, known=torch.where(torch.arange(400) % 2 == 0, data.y, -1)
        )
        noise = None
    else:
        weights, noise = folder / "weights.pt", NOISE
        if weights.exists():
            model = GraphSAGE(FEATURES, 16, 2, CLASSES).eval()
            model.load_state_dict(torch.load(weights, weights_only=True))
        else:
            model = trained(data)
            torch.save(model.state_dict(), weights)
    if saved.exists():
        return us.Smoothed.load(saved, model)
    service = us.Smoothed(model, noise, data, samples=1_000, alpha=0.001, classes=NAMES, audit=100)
    service.save(saved)
    return service


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    log.addHandler(logging.StreamHandler())  # servers show warnings alone, and every answer is to be logged
    log.setLevel(logging.INFO)
    folder = Path(os.environ.get("SERVICE_FOLDER", "service"))
    app.state.service = opened(folder, os.environ.get("SERVICE_KIND", "smoothed"))
    app.state.since = time.time()
    yield


app = FastAPI(title="Accounts that no forged link can hide", lifespan=lifespan)


class Nodes(BaseModel):
    nodes: list[int] = Field(min_length=1, max_length=100)


class Arrivals(BaseModel):
    x: list[list[float]] = Field(min_length=1, max_length=100)
    neighbours: list[list[int]] = Field(min_length=1, max_length=100)


@app.exception_handler(InputError)
def bad_input(request: Request, error: InputError) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, status_code=422)


@app.exception_handler(RefusedVotes)
def refused(request: Request, error: RefusedVotes) -> JSONResponse:
    log.critical("the audit refuses this service: %s", error)
    return JSONResponse({"detail": "The service has been stopped by its audit."}, status_code=503)


@app.get("/health")
def health(request: Request) -> JSONResponse:
    about = request.app.state.service.about
    told = {"since": request.app.state.since, **about}
    return JSONResponse(told, status_code=200 if about["refused"] is None else 503)


@app.post("/label")
async def label(request: Request, asked: Nodes) -> dict[str, Any]:
    said = await run_in_threadpool(request.app.state.service.predict, asked.nodes)
    labels = said.answer.tolist()
    log.info(json.dumps({"targets": asked.nodes, "seed": said.seed, "labels": labels}))
    return {"labels": labels}


@app.post("/certify")
async def certify(request: Request, asked: Nodes) -> dict[str, Any]:
    return await run_in_threadpool(answer, request.app.state.service, asked.nodes)


@app.post("/arrive")
async def arrive(request: Request, asked: Arrivals) -> dict[str, Any]:
    return await run_in_threadpool(arriving, request.app.state.service, asked)


def arriving(service: us.Smoothed, asked: Arrivals) -> dict[str, Any]:
    if len(asked.x) != len(asked.neighbours):
        raise InputError("Each account that arrives needs one row of x and one list of neighbours.")
    if any(len(row) != FEATURES for row in asked.x):
        raise InputError(f"Each account has {FEATURES} features.")
    return answer(service, service.arriving(torch.tensor(asked.x), asked.neighbours))


def answer(service: us.Smoothed, nodes: Any) -> dict[str, Any]:
    """Labels and sizes, logged with the seed that reproduces them."""
    begin = time.perf_counter()
    certs = service.certify(nodes)
    votes = getattr(certs, "votes", None)
    seed = None if votes is None else votes.provenance["seed"]
    said = {
        "labels": certs.answer.tolist(),
        "size": certs.size.tolist(),
        "confidence": certs.confidence,
    }
    seconds = round(time.perf_counter() - begin, 4)
    log.info(json.dumps({"targets": certs.targets.tolist(), "seed": seed, "seconds": seconds, **said}))
    return said
