"""Votes and proofs of a power-law graph on a Ray cluster of two nodes, one of which is killed in the middle: those of a serial run.

    python -m benchmarks.checks.ray_scale [--nodes 170000] [--targets 200] [--samples 12000]

The nodes are raylets on loopback addresses with a processor each. Votes are counted by `us.RayRunner`; a proof needs no runner of its
own: targets are independent, so each task proves some of them. A node is killed once a third of the blocks, or of the tasks, is done.
"""

import argparse
import json
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("RAY_worker_niceness", "0")  # a worker on a busy machine has the serial run's rights

import numpy as np
import torch
from torch_geometric.nn import GraphSAGE

import unswayed as us
from benchmarks.speed.scale import CLASSES, FEATURES, WIDTH, noise_of, power_law
from unswayed.experiments.one_graph import timed

HOSTS = ("127.0.0.2", "127.0.0.3")
PARTS = 4  # tasks of a proof

Strike = Callable[[], None]


class Striking:
    """A runner on whose way a blow is struck, once a third of the blocks is counted."""

    def __init__(self, runner: us.RayRunner, strike: Strike) -> None:
        self.runner, self.strike = runner, strike

    def run(self, question: Any, blocks: list[Any]) -> Iterator[Any]:
        for number, pair in enumerate(self.runner.run(question, blocks)):
            if number == len(blocks) // 3:
                self.strike()
            yield pair


def proved(ray: Any, ballots: Any, data: Any, targets: torch.Tensor, strike: Strike | None = None) -> Any:
    """The sizes of all targets, some of them in each task, and the hosts that found them."""

    @ray.remote(num_cpus=1, max_retries=5)
    def task(ballots: Any, data: Any, part: torch.Tensor) -> tuple[Any, str]:
        return us.prove(ballots, us.Row(data, part)).size, ray.util.get_node_ip_address()

    given, whole = ray.put(ballots), ray.put(data)
    asked = [task.remote(given, whole, part) for part in torch.tensor_split(targets, PARTS)]
    if strike is not None:
        ray.wait(asked, num_returns=PARTS // 3)
        strike()
    done = ray.get(asked)
    return np.concatenate([sizes for sizes, _ in done]), sorted({host for _, host in done})


class Cluster:
    """A head without processors, and two nodes of one each on addresses of their own."""

    def __init__(self, ray: Any) -> None:
        from ray.cluster_utils import Cluster as Raylets

        self.ray = ray
        self.raylets = Raylets(
            initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}
        )
        self.nodes = {host: self._added(host) for host in HOSTS}
        ray.init(self.raylets.address, log_to_driver=False, logging_level="FATAL")

    def _added(self, host: str) -> Any:
        return self.raylets.add_node(num_cpus=1, node_ip_address=host)

    def kill(self) -> None:
        """Kill the first node."""
        self.raylets.remove_node(self.nodes[HOSTS[0]], allow_graceful=False)

    def revive(self) -> None:
        """Another node in its place."""
        self.nodes[HOSTS[0]] = self._added(HOSTS[0])

    def close(self) -> None:
        self.ray.shutdown()
        self.raylets.shutdown()


def check(nodes: int, targets: int, samples: int, folder: Path) -> dict[str, Any]:
    """What came out, and whether it is that of a serial run."""
    import ray

    data = power_law(nodes, folder)
    data.x = data.x.clone()  # tasks elsewhere have no such file
    asked = torch.randperm(nodes)[:targets]
    model = GraphSAGE(FEATURES, WIDTH, 2, CLASSES).eval()
    threat, noise = us.Row(data, asked), noise_of("keep", nodes)
    ballots = us.LabelBallots(CLASSES)
    ballots.freeze(data, known=torch.where(torch.arange(nodes) % 5 == 0, data.y, -1))

    def poll(runner: Any = None) -> Any:
        return us.poll(model, threat, noise, samples=samples, runner=runner, audit=0, progress=False).blocks

    seconds: dict[str, float] = {}
    seconds["serial"], votes = timed(poll)
    seconds["serial proofs"], sizes = timed(lambda: us.prove(ballots, threat).size)
    cluster = Cluster(ray)
    try:
        both, one = (us.RayRunner(address=cluster.raylets.address, workers=number) for number in (None, 1))
        poll(both)  # workers start and import
        seconds["one worker"], single = timed(lambda: poll(one))
        seconds["two workers"], double = timed(lambda: poll(both))
        seconds["proofs on two"], (found, hosts) = timed(lambda: proved(ray, ballots, data, asked))
        seconds["one killed"], after = timed(lambda: poll(Striking(both, cluster.kill)))
        cluster.revive()
        killed = timed(lambda: proved(ray, ballots, data, asked, cluster.kill))
        seconds["proofs, one killed"], (sizes_after, _) = killed
    finally:
        cluster.close()
    return {
        "nodes": nodes,
        "targets": targets,
        "samples": samples,
        "hosts": hosts,
        "votes identical": np.array_equal(votes, single) and np.array_equal(votes, double),
        "proofs identical": np.array_equal(sizes, found),
        "votes identical, one killed": np.array_equal(votes, after),
        "proofs identical, one killed": np.array_equal(sizes, sizes_after),
        "speed-up of two over one": round(seconds["one worker"] / seconds["two workers"], 2),
        "load average": os.getloadavg()[0],
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=170_000)
    parser.add_argument("--targets", type=int, default=200)
    parser.add_argument("--samples", type=int, default=12_000)
    a = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        told = check(a.nodes, a.targets, a.samples, Path(folder))
    print(json.dumps(told))
    raise SystemExit(not all(said for what, said in told.items() if "identical" in what))


if __name__ == "__main__":
    main()
