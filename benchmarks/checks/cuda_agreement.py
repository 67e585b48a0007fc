"""CPU against CUDA: the same noise bit for bit, the same votes but for logits that tie within rounding.

    PYTHONPATH=src python3 -m benchmarks.checks.cuda_agreement [--samples 500]

Needs a CUDA device, numpy, scipy, torch and torch_geometric. Random graphs always; Cora too where $UNSWAYED_DATA has it. A
vote may differ only in a sample whose two largest logits on the CPU lie within 1e-3 of the logits' scale; every other
difference is an error (exit code 1).
"""

import argparse
import json
import sys
import time

import numpy as np
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, GIN, GraphSAGE, global_max_pool
from torch_geometric.utils import erdos_renyi_graph

from unswayed.datasets import load
from unswayed.errors import WorldError
from unswayed.sampling.engines import choose
from unswayed.sampling.engines.asking.generic import GenericEngine
from unswayed.sampling.question import Question
from unswayed.sampling.stream import Stream
from unswayed.sampling.structures import layout_of
from unswayed.sampling.threats import AllPairs, Pairs, Row
from unswayed.theory.noise import AddDelete, Flip

TIE = 1e-3


class Pooled(nn.Module):
    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.body, self.head = GIN(features, 16, 3), nn.Linear(16, classes)

    def forward(self, x, edge_index, batch):
        return self.head(global_max_pool(self.body(x, edge_index), batch))


def check_noise() -> int:
    """Words and flips compared on both devices; the number of bits compared."""
    compared = 0
    places = [
        (0, 64, 2708),
        (3, 9, 19717),
        (999, 1003, 1),
        (2**32 - 2, 2**32 + 5, 100),
        (0, 0, 5),
        (0, 5, 0),
        (0, 3, 5_000_001),
    ]
    for seed in (0, 2**63 + 12345):
        for purpose in ("certify", "train"):
            for start, stop, entries in places:
                for target in (None, 7):
                    stream = Stream(seed, purpose)
                    here = stream.words(start, stop, entries, target=target)
                    there = stream.words(start, stop, entries, target=target, device="cuda")
                    assert torch.equal(here, there.cpu()), "words differ"
                    for noise in (Flip(0.7), AddDelete(0.001, 0.4)):
                        flips = stream.flips(start, stop, entries, noise, target=target, device="cuda")
                        for bits, threshold in zip(flips, noise.thresholds, strict=True):
                            assert torch.equal(bits.cpu(), here < threshold), "flips differ"
                    compared += here.numel()
    return compared


def random_questions():
    torch.manual_seed(0)
    noise = Flip(0.7)
    for n, p in ((60, 0.08), (300, 0.01)):
        data = Data(x=torch.randn(n, 12), edge_index=erdos_renyi_graph(n, p))
        for kind in (GCN, GAT, GIN, GraphSAGE):
            model = kind(12, 16, 2, 4)
            yield f"row {kind.__name__} {n}", Question(model, Row(data, [0, 1, n - 1]), noise)
            yield (
                f"nodes {kind.__name__} {n}",
                Question(model, AllPairs(data, [0, n - 1]), AddDelete(0.01, 0.4)),
            )
        yield f"3 layers {n}", Question(GCN(12, 16, 3, 4), Row(data, [0, 1]), noise, shared=False)
        pairs = [(i, i + 1) for i in range(n - 1)]
        yield f"pairs {n}", Question(model, Pairs(data, pairs, [0, 5]), noise)
        small = [data.subgraph(torch.arange(k)) for k in (1, 7, 20)]
        yield f"graphs {n}", Question(Pooled(12, 3), AllPairs(small), noise)


def cora_questions():
    try:
        cora = load("cora")
    except WorldError:
        return  # not on this machine
    for kind in (GCN, GAT, GraphSAGE):
        model = kind(cora.num_features, 16, 2, cora.num_classes)
        yield f"Cora row {kind.__name__}", Question(model, Row(cora.graph, [10, 1708, 2707]), Flip(0.7))


def close_calls(question: Question, samples: int) -> np.ndarray:
    """How many samples of each target have two largest logits that nearly tie on the CPU."""
    engine = GenericEngine(question)
    ties = np.zeros(len(question.threat), dtype=int)
    with engine.classifier.evaluation():
        for target in range(len(ties)):
            layout = layout_of(question, target)
            for low in range(0, samples, 50):
                high = min(low + 50, samples)
                flips = engine._draw(low, high, layout.drawn, question.key_of(target))
                out = engine._answers(engine.classifier, layout, flips, engine._nodes((target,)))
                top = out.topk(2, dim=-1).values
                ties[target] += int((top[..., 0] - top[..., 1] < TIE * (1 + out.abs().amax(dim=-1))).sum())
    return ties


def compare(name: str, question: Question, samples: int) -> dict:
    from dataclasses import replace

    there_question = replace(question, device="cuda")
    here = GenericEngine(replace(question, engine="generic")).count(0, samples)
    generic = GenericEngine(there_question).count(0, samples)
    begin = time.perf_counter()
    engine = choose(there_question)
    chosen = engine.count(0, samples)
    seconds = time.perf_counter() - begin
    moved = [np.abs(here - there).sum(axis=1) // 2 for there in (generic, chosen)]
    allowed = close_calls(question, samples) if max(m.max() for m in moved) else np.zeros(len(here), int)
    return {
        "case": name,
        "engine": engine.name,
        "moved": [int(m.sum()) for m in moved],
        "ties": int(allowed.sum()),
        "agrees": bool(all(np.all(m <= allowed) for m in moved)),
        "seconds": round(seconds, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=500)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("There is no CUDA device here.")
    print(json.dumps({"noise": "equal bit for bit", "words": check_noise()}), flush=True)
    agrees = True
    for name, question in [*random_questions(), *cora_questions()]:
        row = compare(name, question, arguments.samples)
        agrees &= row["agrees"]
        print(json.dumps(row), flush=True)
    sys.exit(0 if agrees else 1)


if __name__ == "__main__":
    main()
