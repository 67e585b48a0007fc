"""Throw damaged and hostile input at everything that reads any: no traceback, no hang, no wrong certificate.

    python -m benchmarks.checks.fuzz --cases 100000 --seed 0

Each case mutates something valid (bytes, or one field) and hands it to the reader. Allowed: an `UnswayedError` with one
sentence, an exit code of 0 or 2 with one line, or a result that keeps its promises; votes that load are certified, and the
certificate is checked against an independent computation in exact fractions.
"""

import argparse
import faulthandler
import json
import random
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

from benchmarks.checks.fuzz_commands import CommandLines, RecordFiles, shortcuts
from benchmarks.checks.fuzz_readers import SettingsFiles, Tables, VoteFiles
from unswayed.errors import UnswayedError

LIMIT = 30  # seconds: a case that takes longer hangs
TARGETS = {
    "votes": (VoteFiles, 0.50),
    "settings": (SettingsFiles, 0.28),
    "tables": (Tables, 0.18),
    "records": (RecordFiles, 0.02),
    "commands": (CommandLines, 0.02),
}


class Hang(BaseException):
    pass


def _hang(*_):
    raise Hang


def fuzz(target: str, cases: int, seed: int) -> tuple[Counter, list[str]]:
    """(how the cases ended, what should not have happened)."""
    rng = random.Random(f"{target}-{seed}")
    ends, findings = Counter(), []
    signal.signal(signal.SIGALRM, _hang)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        subject = TARGETS[target][0](Path(folder), rng)
        for number in range(cases):
            signal.setitimer(signal.ITIMER_REAL, LIMIT)
            try:
                subject.case()
                ends["accepted"] += 1
            except UnswayedError as error:
                ends[type(error).__name__] += 1
                if "\n" in str(error).strip():
                    findings.append(f"{target} case {number}: an error of several lines: {error!r}")
            except Hang:
                findings.append(
                    f"{target} case {number}: longer than {LIMIT} s {getattr(subject, 'last', '')}"
                )
            except Exception:
                findings.append(f"{target} case {number}: {traceback.format_exc()[-1500:]}")
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    return ends, findings


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=sorted(TARGETS))
    given = parser.parse_args()
    faulthandler.enable()
    shortcuts()
    total, wrong = 0, 0
    for target, (_, share) in TARGETS.items():
        if given.only not in (None, target):
            continue
        begin, cases = time.time(), round(given.cases * (1 if given.only else share))
        ends, findings = fuzz(target, cases, given.seed)
        total, wrong = total + cases, wrong + len(findings)
        print(
            json.dumps(
                {
                    "target": target,
                    "cases": cases,
                    "ends": dict(ends),
                    "findings": len(findings),
                    "seconds": round(time.time() - begin, 1),
                }
            ),
            flush=True,
        )
        for text in findings[:10]:
            print(text, flush=True)
    print(json.dumps({"cases": total, "findings": wrong}))
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
