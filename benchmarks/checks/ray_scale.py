"""Votes and proofs of a power-law graph on a Ray cluster of two nodes, one of which is killed in the middle: those of a serial run.

    python -m benchmarks.checks.ray_scale [--nodes 170000] [--targets 200] [--samples 4000]

The nodes are raylets on loopback addresses. Votes are counted by `us.RayRunner`; a proof needs no runner of its own: targets are independent, so
each task proves some of them.
"""

import argparse
import json
import os
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import numpy as np
import torch
from torch_geometric.nn import GraphSAGE

import unswayed as us
from benchmarks.speed.scale import CLASSES, FEATURES, WIDTH, noise_of, power_law

HOSTS = ("127.0.0.2", "127.0.0.3")


def started() -> tuple[Any, list[Any]]:
    """A head without processors, and two nodes of one each on addresses of their own."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    return cluster, [cluster.add_node(num_cpus=1, node_ip_address=host) for host in HOSTS]


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    found = work()
    return time.perf_counter() - begin, found


def struck(cluster: Any, node: Any, delay: float, work: Callable[[], Any]) -> tuple[float, Any, bool]:
    """The same while a node is killed after a while, and whether it died before the work was done."""
    died: list[float] = []

    def kill() -> None:
        time.sleep(delay)
        cluster.remove_node(node, allow_graceful=False)
        died.append(time.perf_counter())

    killer = threading.Thread(target=kill)
    killer.start()
    seconds, found = timed(work)
    end = time.perf_counter()
    killer.join()
    return seconds, found, died[0] < end


def proved(parts: list[torch.Tensor], ballots: Any, data: Any, task: Callable[..., Any]) -> Callable[[], Any]:
    """The sizes of all targets, some of them in each task."""
    import ray

    def prove() -> Any:
        given, whole = ray.put(ballots), ray.put(data)
        done = ray.get([task.remote(given, whole, part) for part in parts])
        return np.concatenate([sizes for sizes, _ in done]), {host for _, host in done}

    return prove


def main() -> None:
    import ray

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=170_000)
    parser.add_argument("--targets", type=int, default=200)
    parser.add_argument("--samples", type=int, default=4_000)
    a = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        data = power_law(a.nodes, Path(folder))
        data.x = data.x.clone()  # tasks elsewhere have no such file
        targets = torch.randperm(a.nodes)[: a.targets]
        model = GraphSAGE(FEATURES, WIDTH, 2, CLASSES).eval()
        threat, noise = us.Row(data, targets), noise_of("keep", a.nodes)
        ballots = us.LabelBallots(CLASSES)
        ballots.freeze(data, known=torch.where(torch.arange(a.nodes) % 5 == 0, data.y, -1))

        @ray.remote(num_cpus=1, max_retries=5)
        def task(ballots: Any, data: Any, part: torch.Tensor) -> tuple[Any, str]:
            return us.prove(ballots, us.Row(data, part)).size, ray.util.get_node_ip_address()

        def poll(runner: Any = None) -> Any:
            return us.poll(
                model, threat, noise, samples=a.samples, runner=runner, audit=0, progress=False
            ).blocks

        alone, votes = timed(poll)
        alone_proof, sizes = timed(lambda: us.prove(ballots, threat).size)
        cluster, nodes = started()
        ray.init(cluster.address, log_to_driver=False, logging_level="FATAL")
        try:
            runner = us.RayRunner(address=cluster.address)
            parts = list(torch.split(targets, 20))
            both, found = timed(lambda: poll(runner))
            proof, (found_sizes, hosts) = timed(proved(parts, ballots, data, task))
            same = np.array_equal(votes, found) and np.array_equal(sizes, found_sizes)
            hit, after, early = struck(cluster, nodes[0], both / 3, lambda: poll(runner))
            again = cluster.add_node(num_cpus=1, node_ip_address=HOSTS[0])
            proving = proved(parts, ballots, data, task)
            hit_proof, (sizes_after, _), early_proof = struck(cluster, again, proof / 3, proving)
        finally:
            ray.shutdown()
            cluster.shutdown()
    kept = np.array_equal(votes, after) and np.array_equal(sizes, sizes_after)
    seconds = {"serial": alone, "two nodes": both, "one killed": hit}
    seconds |= {
        "serial proofs": alone_proof,
        "proofs on two nodes": proof,
        "proofs, one killed": hit_proof,
    }
    told = {"nodes": a.nodes, "targets": a.targets, "samples": a.samples, "hosts": sorted(hosts)}
    told |= {"killed in the middle": [early, early_proof]}
    print(json.dumps(told | {"identical": same, "identical after a kill": kept, "seconds": seconds}))
    raise SystemExit(not (same and kept))


if __name__ == "__main__":
    main()
