"""How much slower each engine, and training, is with a busy neighbour on every core: torch's own number of threads against one, in one run.

python -m benchmarks.speed.busy [--neighbours N] [--threads N] [--repeats 5] [--out busy.json]

For each engine, and for a short training, the wall time with as many threads as torch would take, divided by its time with one thread; both in turns, the best of
several, while a process of its own keeps each core busy. "unguarded" is the module called plainly with all threads: what the timing of threads is for.
"""

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GIN, GraphSAGE, global_add_pool
from torch_geometric.utils import erdos_renyi_graph

import unswayed as us
from unswayed.datasets import Dataset, split
from unswayed.models.training import fit
from unswayed.models.training.clean import CleanSettings
from unswayed.models.training.stepping import diary
from unswayed.sampling.engines import choose
from unswayed.sampling.question import Question

LESSON = CleanSettings(steps=80)
WARM = 4  # calls before timing, in which threads are chosen
SECONDS = 2.0  # for the turns of one engine, at most, beyond the first five


def spin() -> None:
    while True:
        pass


@contextmanager
def neighbours(number: int) -> Iterator[None]:
    crowd = [multiprocessing.get_context("spawn").Process(target=spin, daemon=True) for _ in range(number)]
    for one in crowd:
        one.start()
    try:
        yield
    finally:
        for one in crowd:
            one.terminate()
            one.join()


class Pooled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = GIN(8, 32, 2, 3)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: Any = None) -> torch.Tensor:
        return global_add_pool(self.net(x, edge_index), batch)


def graph(nodes: int, share: float) -> Data:
    torch.manual_seed(nodes)
    return Data(x=torch.randn(nodes, 8), edge_index=erdos_renyi_graph(nodes, share))


def questions() -> dict[str, tuple[Question, int]]:
    """A question for each engine, and how many samples make a call of a fraction of a second."""
    torch.manual_seed(0)
    data, sage, gcn = graph(2_700, 0.0015), GraphSAGE(8, 64, 2, 7).eval(), GCN(8, 32, 3, 7).eval()
    row, few = us.Row(data, list(range(20))), us.AddDelete(0.002, 0.4)
    listed = us.Pairs(data, [(i, i + 1) for i in range(40)], [0, 1])
    arrive = us.Row.new(data, torch.randn(3, 8), [[0, 1], [2], [3, 4, 5]])
    return {
        "row": (Question(sage, row, us.Flip(0.7)), 400),
        "few": (Question(sage, row, few, draws="sparse"), 400),
        "kept": (Question(sage, row, us.Keep(3, 12)), 8_000),
        "dense": (
            Question(Pooled().eval(), us.AllPairs([graph(20, 0.2), graph(25, 0.2)]), us.Flip(0.8)),
            4_000,
        ),
        "arrivals": (Question(sage, arrive, us.Flip(0.7)), 400),
        "plan, one row": (Question(gcn, us.Row(data, [0]), us.Flip(0.7)), 24),
        "plan, listed pairs": (Question(gcn, listed, us.Flip(0.7)), 4_000),
        "whole-graph": (Question(GraphSAGE(8, 4, 2, 3).eval(), us.AllPairs(data, [0, 1]), few), 12),
        "generic": (Question(gcn, us.Row(data, [0, 1]), few, engine="generic"), 12),
    }


def best(asks: dict[int, Callable[[], Any]], repeats: int, seconds: float = SECONDS) -> dict[int, float]:
    """The least wall seconds with each number of threads, in turns: so many at least, more while there is time."""
    found, turn, end = dict.fromkeys(asks, float("inf")), 0, time.perf_counter() + seconds
    while turn < repeats or time.perf_counter() < end:
        for number, ask in asks.items():
            torch.set_num_threads(number)
            begin = time.perf_counter()
            ask()
            found[number] = min(found[number], time.perf_counter() - begin)
        turn += 1
    return found


def row_of(name: str, question: Question, samples: int, threads: int, repeats: int) -> dict[str, Any]:
    asks: dict[int, Callable[[], Any]] = {}
    for number in (1, threads):
        torch.set_num_threads(number)
        engine = choose(question)
        for _ in range(WARM):
            engine.ask(0, samples)
        asks[number] = lambda engine=engine: engine.ask(0, samples)
    seconds = best(asks, repeats)
    ratio = seconds[threads] / seconds[1]
    return {
        "engine": engine.name,
        "asked": name,
        "threads": engine.threads,
        "seconds": seconds,
        "ratio": round(ratio, 2),
    }


def training(threads: int, repeats: int) -> dict[str, Any]:
    """A short training of a two-layer network, its timing of threads included."""
    data = graph(2_700, 0.0015)
    data.x, data.y = torch.randn(2_700, 64), torch.arange(2_700) % 7
    dataset = Dataset("random", "node", 64, 7, data=data)
    parts = split(dataset, 0)
    with diary() as kept:
        asks = dict.fromkeys((1, threads), lambda: fit("sage", dataset, parts, settings=LESSON))
        seconds = best(asks, repeats)
    ratio = round(seconds[threads] / seconds[1], 2)
    return {"engine": "training", "threads": kept.words, "seconds": seconds, "ratio": ratio}


def unguarded(threads: int, repeats: int) -> dict[str, Any]:
    """A plain call of a three-layer network with all threads, against one."""
    torch.manual_seed(0)
    data, net = graph(2_700, 0.0015), GCN(8, 64, 3, 7).eval()
    asks = dict.fromkeys((1, threads), lambda: [net(data.x, data.edge_index) for _ in range(4)])
    with torch.no_grad():
        seconds = best(asks, repeats, 0)
    return {"engine": "unguarded", "seconds": seconds, "ratio": round(seconds[threads] / seconds[1], 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--neighbours", type=int, default=os.cpu_count())
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out")
    given = parser.parse_args()
    rows = []
    with neighbours(given.neighbours):
        rows.append(unguarded(given.threads, given.repeats))
        print(rows[-1], file=sys.stderr, flush=True)
        for name, (question, samples) in questions().items():
            rows.append(row_of(name, question, samples, given.threads, given.repeats))
            print(rows[-1], file=sys.stderr, flush=True)
        rows.append(training(given.threads, given.repeats))
        print(rows[-1], file=sys.stderr, flush=True)
    worst = max(row["ratio"] for row in rows[1:])
    print(json.dumps({"worst": worst, "unguarded": rows[0]["ratio"]}))
    if given.out:
        with open(given.out, "w") as file:
            json.dump({"neighbours": given.neighbours, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
