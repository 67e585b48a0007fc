"""Kill a poll with SIGKILL at random moments, resume it each time, and compare with an uninterrupted run.

    python -m benchmarks.checks.kill_and_resume [--kills 30] [--samples 40000] [--seed 0] [--folder DIR]

A kill counts only if it interrupts a run with samples still to draw; a finished store gives way to a new one. After every
kill both files must be readable. At the end each store is resumed to the end and must hold exactly the votes of a run that
nobody disturbed. Exit code 1 otherwise.
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def child(store: str, samples: int) -> None:
    """One poll into the store, written after every block so that kills meet writes as often as possible."""
    import torch

    import unswayed as us
    from unswayed import polling

    torch.set_num_threads(1)
    torch.manual_seed(0)
    mix = torch.randn(24, 6, 3)

    def classifier(rows):
        bits = torch.as_tensor(rows, dtype=torch.float32)
        return torch.einsum("bn,nkc->bkc", bits, mix).relu().sum(dim=1)

    polling.SAVE_EVERY = 0.0
    x = torch.rand(40, 24, generator=torch.Generator().manual_seed(1)) < 0.5
    # everything is imported now
    us.poll(classifier, us.Bits(x), us.Flip(beta=0.7), samples=1, engine="generic")
    print("polling", flush=True)
    us.poll(classifier, us.Bits(x), us.Flip(beta=0.7), samples=samples, store=store, engine="generic")


def start(store: Path, samples: int) -> subprocess.Popen:
    command = [sys.executable, __file__, "--child", str(store), "--samples", str(samples)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()  # imports are over: from here on a kill can hurt
    return process


def readable(store: Path) -> int:
    """How many samples a store holds; fails if any of its files cannot be read."""
    from unswayed.store import Store

    opened = Store(store)
    if not (store / "settings.json").exists():
        return 0
    opened.settings()
    votes = opened.votes()
    return 0 if votes is None else int(votes.samples.min())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--samples", type=int, default=40_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--child")
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child, arguments.samples)
        return
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="unswayed-kill-"))
    result = rehearse(folder, arguments.kills, arguments.samples, random.Random(arguments.seed))
    print(json.dumps(result))
    sys.exit(0 if result["equal"] and result["kills"] == arguments.kills else 1)


def rehearse(folder: Path, kills: int, samples: int, rng: random.Random) -> dict:
    from unswayed.store import load

    whole = start(folder / "whole", samples)
    begin = time.monotonic()
    whole.wait()
    longest = time.monotonic() - begin
    expected = load(folder / "whole")
    stores, found, idle = [folder / "0"], [], 0
    while len(found) < kills:
        process = start(stores[-1], samples)
        try:
            process.wait(timeout=rng.uniform(0, longest / 4))
            complete = True
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            drawn = readable(stores[-1])
            complete = drawn == samples
            if complete:
                idle += 1
            else:
                found.append(drawn)
        if complete:  # nothing left to interrupt here
            stores.append(folder / str(len(stores)))
    for store in stores:
        start(store, samples).wait()
    equal = all(load(store) == expected for store in stores)
    return {
        "kills": len(found),
        "kills after the last block, not counted": idle,
        "stores": len(stores),
        "samples found after each kill": found,
        "of": samples,
        "equal": equal,
    }


if __name__ == "__main__":
    main()
