"""Seconds to prove all nodes after the forward pass, and how they grow with nodes, degree and classes; one new node too.

python -m benchmarks.speed.prove_speed [--nodes 1000000] [--device cuda] [--dataset cornell5] [--out prove_speed.json]
python -m benchmarks.speed.prove_speed --plot prove_speed.svg prove_speed_cpu.json prove_speed_h200.json
"""

import argparse
import json
import resource
import sys
import time

import numpy as np

from unswayed.theory.electorate import Electorate
from unswayed.theory.roll import Roll

SCALE = 2**20


def synthetic(nodes: int, degree: int, classes: int, seed: int = 0) -> Electorate:
    """A random graph whose voters say a random class loudest, and targets with a weak opinion of their own."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, nodes, (2, nodes * degree // 2))
    ends = ends[:, ends[0] != ends[1]]
    code = np.sort(np.concatenate([ends[0] * nodes + ends[1], ends[1] * nodes + ends[0]]))
    code = code[np.append(True, code[1:] != code[:-1])]
    target, voter = code // nodes, code % nodes
    start = np.searchsorted(target, np.arange(nodes + 1))
    said = rng.standard_normal((nodes, classes), dtype=np.float32)
    said[np.arange(nodes), rng.integers(0, classes, nodes)] += 3
    said = np.exp(2 * said)
    ballots = np.rint(said / said.sum(axis=1, keepdims=True) * SCALE).astype(np.int32)
    own = np.rint(rng.standard_normal((nodes, classes)) * 0.1 * SCALE).astype(np.int64)
    everyone = np.arange(nodes)
    people = Electorate(
        Roll(ballots, nodes), own, own * 2, start, voter, voter, everyone, np.full(nodes, nodes - 1)
    )
    _ = people.scores  # added up before the clock starts
    return people


def seconds(people: Electorate, change: str, device: str) -> dict[str, float]:
    """Wall and processor time of all sizes, lists sorted anew."""
    people.roll.lists.clear()
    people.roll.joined.clear()
    begun, busy = time.perf_counter(), time.process_time()
    if device == "cpu":
        people.sizes(change)
    else:
        from unswayed.ballots.device import sizes_on

        sizes_on(people, device, change)
    return {"seconds": time.perf_counter() - begun, "processor": time.process_time() - busy}


def row_of(nodes: int, degree: int, classes: int, device: str) -> dict[str, object]:
    people = synthetic(nodes, degree, classes)
    if device != "cpu":
        seconds(people.take(slice(0, 1000)), "any", device)  # wake the card
    told = {change: seconds(people, change, device) for change in ("any", "adds", "deletes")}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    row = {"nodes": nodes, "degree": degree, "classes": classes, **told, "peak GiB so far": round(peak, 2)}
    print(row, file=sys.stderr, flush=True)
    return row


def newcomer(nodes: int, classes: int, repeats: int = 200) -> dict[str, float]:
    """Milliseconds for label and size of one node that arrives, lists presorted: electorate and size, each made anew."""
    people = synthetic(nodes, 20, classes)
    times = []
    for i in range(repeats + classes * 8):
        here = slice(people.start[i], people.start[i + 1])
        begun = time.perf_counter()
        one = Electorate(
            people.roll, people.own[i : i + 1], people.base[i : i + 1], np.array([0, here.stop - here.start]),
            people.row[here], people.voter[here], np.array([-1]), np.array([nodes]),
        )  # fmt: skip
        one.sizes()
        times.append((time.perf_counter() - begun) * 1000)
    last = np.sort(times[-repeats:])  # the first of each label sort its lists
    return {"nodes": nodes, "median ms": float(np.median(last)), "95% ms": float(last[int(repeats * 0.95)])}


def real(name: str, device: str) -> dict[str, object]:
    """All nodes of a dataset under label ballots with a fifth of the labels known."""
    import torch

    import unswayed as us
    from unswayed.ballots.claims import electorate
    from unswayed.datasets.loading import load

    found = load(name)
    n = found.graph.num_nodes
    told = torch.from_numpy(np.random.default_rng(0).random(n) < 0.2)
    model = us.LabelBallots(found.num_classes).freeze(found.graph, known=torch.where(told, found.labels, -1))
    threat = us.Row(found.graph, range(n))
    people = electorate(model, threat.graph, threat.targets, threat.entries)
    row = {"dataset": name, "nodes": n, **{c: seconds(people, c, device) for c in ("any", "adds", "deletes")}}
    print(row, file=sys.stderr, flush=True)
    return row


def plot(out: str, files: list[str]) -> None:
    """Seconds against nodes, a line for each file of figures."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "unswayed"
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(5.6, 3.6), layout="constrained")
    for name in files:
        with open(name) as file:
            told = json.load(file)
        rows = [row for row in told["all nodes"] if (row["degree"], row["classes"]) == (20, 8)]
        axis.loglog(
            [row["nodes"] for row in rows],
            [row["any"]["seconds"] for row in rows],
            "o-",
            label=told["device"],
        )
    axis.set(xlabel="nodes proved (mean degree 20, 8 classes)", ylabel="seconds after the forward pass")
    axis.grid(alpha=0.3)
    axis.legend(frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(out, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dataset", help="also this dataset, for example cornell5")
    parser.add_argument("--out", help="write the figures to this file")
    parser.add_argument("--plot", metavar="FIGURE", help="draw the growth told in these files instead")
    parser.add_argument("files", nargs="*")
    a = parser.parse_args()
    if a.plot:
        plot(a.plot, a.files)
        return
    top = a.nodes
    cases = [(n, 20, 8) for n in (top // 100, top // 30, top // 10, top // 3, top)]
    cases += [(top // 10, degree, 8) for degree in (5, 80)] + [
        (top // 10, 20, classes) for classes in (2, 40)
    ]
    rows = [row_of(*case, a.device) for case in cases if case[0] >= 10]
    result = {
        "device": a.device,
        "all nodes": rows,
        "one new node": newcomer(top, 8),
        **({"dataset": real(a.dataset, a.device)} if a.dataset else {}),
    }
    text = json.dumps(result, indent=1)
    print(text)
    if a.out:
        with open(a.out, "w") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main()
