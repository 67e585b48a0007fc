"""The example service, run by a real server and asked by a real client: many at once, wrong input, a restart."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

httpx = pytest.importorskip("httpx")
pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

FOLDER = Path(__file__).parents[2] / "examples" / "service"
REQUESTS = 1_000


@contextmanager
def served(folder, kind):
    """The address of a server of its own process; it is stopped like any service."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "app:app", "--port", str(port), "--log-level", "warning"]
    settings = {**os.environ, "SERVICE_FOLDER": str(folder), "SERVICE_KIND": kind, "OMP_NUM_THREADS": "1"}
    with open(folder / "log", "w") as log:
        server = subprocess.Popen(command, cwd=FOLDER, env=settings, stderr=log)
    try:
        yield _ready(server, f"http://127.0.0.1:{port}")
    finally:
        server.terminate()
        assert server.wait(30) in (0, -15)


def _ready(server, address):
    for _ in range(600):
        assert server.poll() is None, "the server did not start"
        try:
            if httpx.get(f"{address}/health", timeout=5).status_code == 200:
                return address
        except httpx.TransportError:
            time.sleep(0.1)
    raise AssertionError("the server did not answer within a minute")


async def crowd(address, path, bodies):
    """(status codes, seconds) of all requests, sent at once."""
    limits = httpx.Limits(max_connections=None)

    async def one(client, body):
        begin = time.perf_counter()
        answer = await client.post(path, json=body)
        return answer.status_code, time.perf_counter() - begin

    async with httpx.AsyncClient(base_url=address, limits=limits, timeout=240) as client:
        return list(zip(*await asyncio.gather(*(one(client, body) for body in bodies)), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ballots", "smoothed"])
def test_a_thousand_requests_at_once_are_all_answered(kind, tmp_path):
    with served(tmp_path, kind) as address:
        bodies = [{"nodes": [i % 400]} for i in range(REQUESTS)]
        codes, seconds = asyncio.run(crowd(address, "/certify" if kind == "ballots" else "/label", bodies))
        assert set(codes) == {200}
        p50, p99 = np.percentile(seconds, [50, 99])
        print(
            f"{kind}: {REQUESTS} at once, p50 {p50:.2f} s, p99 {p99:.2f} s, {REQUESTS / max(seconds):,.0f} a second"
        )
        alone = []
        with httpx.Client(base_url=address, timeout=60) as client:
            for i in range(50):
                begin = time.perf_counter()
                assert client.post("/certify", json={"nodes": [i]}).status_code == 200
                alone.append(time.perf_counter() - begin)
        p50, p99 = np.percentile(alone, [50, 99])
        print(f"{kind}: one at a time, p50 {1e3 * p50:.1f} ms, p99 {1e3 * p99:.1f} ms")


@pytest.mark.slow
def test_wrong_input_is_refused_and_a_restart_changes_no_proof(tmp_path):
    wrong = [
        ("/certify", {"nodes": [400]}),
        ("/certify", {"nodes": []}),
        ("/certify", {"nodes": ["x"]}),
        ("/certify", {}),
        ("/label", {"nodes": [-1]}),
        ("/arrive", {"x": [[0.0] * 3], "neighbours": [[1]]}),
        ("/arrive", {"x": [[0.0] * 8], "neighbours": [[1], [2]]}),
        ("/arrive", {"x": [[0.0] * 8], "neighbours": [[4000]]}),
    ]
    newcomer = {"x": [[0.5] * 8], "neighbours": [[0, 2, 4, 6, 8]]}
    with served(tmp_path, "ballots") as address:
        for path, body in wrong:
            refused = httpx.post(address + path, json=body, timeout=60)
            assert refused.status_code == 422, (path, body)
            assert refused.json()["detail"]
        first = [httpx.post(address + "/certify", json={"nodes": [i]}, timeout=60).json() for i in range(5)]
        arrived = httpx.post(address + "/arrive", json=newcomer, timeout=60).json()
        assert arrived["confidence"] is None
        assert arrived["size"][0] >= 0
    with served(tmp_path, "ballots") as address:
        again = [httpx.post(address + "/certify", json={"nodes": [i]}, timeout=60).json() for i in range(5)]
        assert again == first
        assert httpx.post(address + "/arrive", json=newcomer, timeout=60).json() == arrived


@pytest.mark.slow
def test_a_restarted_smoothed_service_is_the_saved_one(tmp_path):
    answers = []
    for _ in range(2):
        with served(tmp_path, "smoothed") as address:
            health = httpx.get(f"{address}/health", timeout=60).json()
            assert health["audit"]["agreed"] == 100
            answers.append(httpx.post(f"{address}/certify", json={"nodes": [3, 17]}, timeout=60).json())
            httpx.post(f"{address}/label", json={"nodes": [5]}, timeout=60)
        logged = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines() if line[:1] == "{"]
        assert [line["targets"] for line in logged] == [[3, 17], [5]]
        assert all(isinstance(line["seed"], int) for line in logged)
    assert (tmp_path / "weights.pt").exists()
    for one, other in zip(answers[0]["labels"], answers[1]["labels"], strict=True):
        assert one is None or other is None or one == other
    assert answers[0]["confidence"] == 0.999
