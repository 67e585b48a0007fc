"""Votes and proofs of a power-law graph on a Ray cluster of two nodes, one of which is killed in the middle: those of a serial run.

    python -m benchmarks.checks.ray_scale [--nodes 170000] [--targets 200] [--samples 48000] [--proved 170000]
    python -m benchmarks.checks.ray_scale --samples 0        # proofs alone

The nodes are raylets on loopback addresses with a processor each; one of them is timed before the other joins. Beside their gain stands
that of two plain processes: what this machine gives at most. A first poll starts the workers, which import torch and choose their
engine; it is timed apart, and a second one finds both there. Proofs are made three times and the quickest is told. Who speaks to whom is
laid out by the caller, on one core. A node is killed once a third of the samples is counted, or a third of the time of a proof's sizes is over.
"""

import argparse
import copy
import json
import multiprocessing
import os
import tempfile
import threading
import time
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
from unswayed.experiments.runs import commit
from unswayed.ledger import BLOCK
from unswayed.sampling.engines import choose
from unswayed.sampling.question import Question

HOSTS = ("127.0.0.2", "127.0.0.3")
STORE = {"object_store_memory": 2**31}  # of each node: such clusters have 150 MB otherwise, less than is sent

Strike = Callable[[], None]


class Striking:
    """A runner on whose way a blow is struck: once a third of the samples is counted, or a while after a proof was handed out."""

    def __init__(self, runner: us.RayRunner, strike: Strike, after: float = 0.0) -> None:
        self.runner, self.strike, self.after = runner, strike, after

    def run(self, question: Any, blocks: list[Any]) -> Iterator[Any]:
        counted, struck = 0, False
        for block, tally in self.runner.run(question, blocks):
            counted += block.stop - block.start
            if not struck and counted >= blocks[-1].stop // 3:
                self.strike()
                struck = True
            yield block, tally

    def sizes(self, people: Any) -> Any:
        blow = threading.Timer(self.after, self.strike)
        blow.start()
        try:
            return self.runner.sizes(people)
        finally:
            blow.join()


class Timed:
    """A runner that notes how long the sizes of a proof took; the rest was laid out by the caller."""

    def __init__(self, runner: us.RayRunner) -> None:
        self.runner, self.seconds = runner, 0.0

    def sizes(self, people: Any) -> Any:
        self.seconds, sizes = timed(lambda: self.runner.sizes(people))
        return sizes


class Cluster:
    """A head without processors, and nodes of one each on addresses of their own."""

    def __init__(self, ray: Any) -> None:
        from ray.cluster_utils import Cluster as Raylets

        self.ray, self.nodes = ray, dict[str, Any]()
        self.raylets = Raylets(
            initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **STORE}
        )
        self.add(HOSTS[0])
        ray.init(self.raylets.address, log_to_driver=False, logging_level="FATAL")

    def add(self, host: str) -> None:
        """A node, also in place of one that was killed."""
        self.nodes[host] = self.raylets.add_node(num_cpus=1, node_ip_address=host, **STORE)

    def kill(self) -> None:
        """Kill the first node."""
        self.raylets.remove_node(self.nodes[HOSTS[0]], allow_graceful=False)

    def close(self) -> None:
        self.ray.shutdown()
        self.raylets.shutdown()


def at_once(question: Any, blocks: int, processes: int) -> float:
    """Seconds until so many plain processes have counted so many blocks each, with an engine that was chosen before."""
    engine, context = choose(question), multiprocessing.get_context("fork")
    gate = context.Barrier(processes + 1)

    def work(number: int) -> None:
        gate.wait()
        for block in range(number * blocks, (number + 1) * blocks):
            engine.ask(BLOCK * block, BLOCK * (block + 1))
        gate.wait()

    workers = [context.Process(target=work, args=(number,)) for number in range(processes)]
    for worker in workers:
        worker.start()
    gate.wait()
    seconds, _ = timed(gate.wait)
    for worker in workers:
        worker.join()
    return seconds


def ideal(question: Any, samples: int) -> float:
    """What two plain processes do in the time that one takes for half of it: the most that two nodes can gain here."""
    blocks = max(1, samples // BLOCK // 2)
    return 2 * at_once(question, blocks, 1) / at_once(question, blocks, 2)


def quickest(work: Callable[[], Any]) -> tuple[float, Any]:
    """The shortest of three times, and what came out."""
    found = [timed(work) for _ in range(3)]
    return min(seconds for seconds, _ in found), found[0][1]


def on_one_core(work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds, and those of the processor, on the first core alone: a proof takes all there are otherwise."""
    cores, begun = os.sched_getaffinity(0), time.process_time()
    os.sched_setaffinity(0, {min(cores)})
    try:
        seconds = quickest(work)[0]
        return seconds, (time.process_time() - begun) / 3
    finally:
        os.sched_setaffinity(0, cores)


def votes_of(
    data: Any, asked: Any, samples: int, cluster: Cluster
) -> tuple[dict[str, Any], dict[str, float]]:
    """Whether votes are those of a serial run, how much was gained, and seconds; the cluster has one node, and two afterwards."""
    model = GraphSAGE(FEATURES, WIDTH, 2, CLASSES).eval()
    threat, noise = us.Row(data, asked), noise_of("keep", data.num_nodes)
    runner = us.RayRunner(address=cluster.raylets.address)

    def poll(runner: Any = None) -> Any:
        return us.poll(model, threat, noise, samples=samples, runner=runner, audit=0, progress=False).blocks

    most, seconds = ideal(Question(model, threat, noise), samples), dict[str, float]()
    seconds["serial"], votes = timed(poll)
    seconds["one node, worker's start"], _ = timed(lambda: poll(runner))
    seconds["one node"], single = timed(lambda: poll(runner))
    cluster.add(HOSTS[1])
    seconds["two nodes, one worker's start"], _ = timed(lambda: poll(runner))
    seconds["two nodes"], double = timed(lambda: poll(runner))
    seconds["one killed"], after = timed(lambda: poll(Striking(runner, cluster.kill)))
    cluster.add(HOSTS[0])
    return {
        "votes identical": np.array_equal(votes, single) and np.array_equal(votes, double),
        "votes identical, one killed": np.array_equal(votes, after),
        "speed-up of two plain processes": round(most, 2),
        "speed-up of two nodes over one": round(seconds["one node"] / seconds["two nodes"], 2),
        "speed-up of two nodes over serial": round(seconds["serial"] / seconds["two nodes"], 2),
    }, seconds


def proofs_of(data: Any, asked: Any, cluster: Cluster) -> tuple[dict[str, Any], dict[str, float]]:
    """The same of proofs, on two nodes."""
    nodes, ballots, threat = data.num_nodes, us.LabelBallots(CLASSES), us.Row(data, asked)
    ballots.freeze(data, known=torch.where(torch.arange(nodes) % 5 == 0, data.y, -1))
    runner = us.RayRunner(address=cluster.raylets.address)

    def prove(runner: Any = None) -> Any:
        return us.prove(fresh(ballots), threat, runner=runner).size

    seconds, watch = dict[str, float](), Timed(runner)
    seconds["serial proofs"], sizes = quickest(prove)
    seconds["serial proofs, one core"], seconds["of the processor"] = on_one_core(prove)
    seconds["proofs on two, workers' start"], _ = timed(lambda: prove(runner))
    seconds["proofs on two"], found = quickest(lambda: prove(watch))
    seconds["of which sizes"] = watch.seconds
    blow = Striking(runner, cluster.kill, watch.seconds / 3)
    seconds["proofs, one killed"], after = timed(lambda: prove(blow))
    return {
        "proofs identical": np.array_equal(sizes, found),
        "proofs identical, one killed": np.array_equal(sizes, after),
        "speed-up of proofs over one core": round(
            seconds["serial proofs, one core"] / seconds["proofs on two"], 2
        ),
    }, seconds


def check(nodes: int, targets: int, samples: int, proved: int, folder: Path) -> dict[str, Any]:
    """What came out, and whether it is that of a serial run."""
    import ray

    data = power_law(nodes, folder)
    data.x = data.x.clone()  # tasks elsewhere have no such file
    asked, told, seconds = torch.randperm(nodes), dict[str, Any](), dict[str, float]()
    cluster = Cluster(ray)
    try:
        if samples:
            told, seconds = votes_of(data, asked[:targets], samples, cluster)
        else:
            cluster.add(HOSTS[1])
        proven, took = proofs_of(data, asked[:proved], cluster)
    finally:
        cluster.close()
    return {
        "nodes": nodes,
        "targets": targets,
        "samples": samples,
        "proved": proved,
        **told,
        **proven,
        "commit": commit(),
        "load average": os.getloadavg()[0],
        "seconds": {name: round(value, 1) for name, value in (seconds | took).items()},
    }


def fresh(ballots: Any) -> Any:
    """The same model, whose lists nobody has sorted yet."""
    return copy.deepcopy(ballots)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=170_000)
    parser.add_argument("--targets", type=int, default=200)
    parser.add_argument("--samples", type=int, default=48_000)
    parser.add_argument("--proved", type=int, help="nodes to be proved; all by default")
    a = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        told = check(a.nodes, a.targets, a.samples, a.proved or a.nodes, Path(folder))
    print(json.dumps(told))
    raise SystemExit(not all(said for what, said in told.items() if "identical" in what))


if __name__ == "__main__":
    main()
