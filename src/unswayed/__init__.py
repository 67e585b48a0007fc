"""Prove that no attacker who adds or deletes up to K edges can change what a graph neural network says.

`poll` asks any classifier about noisy structures and returns `Votes`; `certify` turns votes into `Certificates`. `prove` takes
models whose answer is a sum, and needs neither noise nor votes. Names load when first used, so `import unswayed` needs neither
torch nor torch_geometric.
"""

import importlib
from typing import TYPE_CHECKING, Any

from unswayed._version import __version__

if TYPE_CHECKING:
    from unswayed import errors, theory
    from unswayed.ballots.hashed import Hashed
    from unswayed.ballots.meaning import meaning_of
    from unswayed.ballots.networks import BallotNetwork, LabelBallots, Snapshot
    from unswayed.ballots.pairs import PairBallots
    from unswayed.certificates import (
        Certificates,
        Certified,
        Intercepted,
        TopCertificates,
        best_of,
        certify,
        certify_intercepted,
        certify_top,
        chosen_on,
    )
    from unswayed.certificates.proofs import Proofs
    from unswayed.polling import poll
    from unswayed.prospects import prospect
    from unswayed.proving import prove
    from unswayed.report.html import write_report
    from unswayed.report.plots import plot_accuracy
    from unswayed.runners.ray import RayRunner
    from unswayed.runners.serial import SerialRunner
    from unswayed.sampling.fields import receptive_fields
    from unswayed.sampling.flagged import flagged
    from unswayed.sampling.noisy_data import noisy
    from unswayed.sampling.threats import AllPairs, Bits, Directed, Pairs, Relation, Row
    from unswayed.sampling.threats.inject import Inject
    from unswayed.sampling.threats.intercept import Intercept
    from unswayed.sampling.until import Budget, Target, UntilSize
    from unswayed.serving import Smoothed
    from unswayed.store import load
    from unswayed.theory.hide import Hide
    from unswayed.theory.keep import Keep
    from unswayed.theory.mask import Mask
    from unswayed.theory.noise import AddDelete, Flip
    from unswayed.votes import Votes

# name → the module it lives in; a module of the same name stands for itself
_HOMES = {
    "AddDelete": "unswayed.theory.noise",
    "AllPairs": "unswayed.sampling.threats",
    "BallotNetwork": "unswayed.ballots.networks",
    "Bits": "unswayed.sampling.threats",
    "Budget": "unswayed.sampling.until",
    "Certificates": "unswayed.certificates",
    "Certified": "unswayed.certificates",
    "Directed": "unswayed.sampling.threats",
    "Flip": "unswayed.theory.noise",
    "Hashed": "unswayed.ballots.hashed",
    "Hide": "unswayed.theory.hide",
    "Inject": "unswayed.sampling.threats",
    "Intercept": "unswayed.sampling.threats",
    "Intercepted": "unswayed.certificates",
    "Keep": "unswayed.theory.keep",
    "LabelBallots": "unswayed.ballots.networks",
    "Mask": "unswayed.theory.mask",
    "PairBallots": "unswayed.ballots.pairs",
    "Pairs": "unswayed.sampling.threats",
    "Proofs": "unswayed.certificates.proofs",
    "RayRunner": "unswayed.runners.ray",
    "Relation": "unswayed.sampling.threats",
    "Row": "unswayed.sampling.threats",
    "SerialRunner": "unswayed.runners.serial",
    "Smoothed": "unswayed.serving",
    "Snapshot": "unswayed.ballots.networks",
    "Target": "unswayed.sampling.until",
    "TopCertificates": "unswayed.certificates",
    "UntilSize": "unswayed.sampling.until",
    "Votes": "unswayed.votes",
    "best_of": "unswayed.certificates",
    "certify": "unswayed.certificates",
    "certify_intercepted": "unswayed.certificates",
    "certify_top": "unswayed.certificates",
    "chosen_on": "unswayed.certificates",
    "errors": "unswayed.errors",
    "flagged": "unswayed.sampling.flagged",
    "load": "unswayed.store",
    "meaning_of": "unswayed.ballots.meaning",
    "noisy": "unswayed.sampling.noisy_data",
    "plot_accuracy": "unswayed.report.plots",
    "poll": "unswayed.polling",
    "prospect": "unswayed.prospects",
    "prove": "unswayed.proving",
    "receptive_fields": "unswayed.sampling.fields",
    "theory": "unswayed.theory",
    "write_report": "unswayed.report.html",
}

__all__ = [
    "AddDelete",
    "AllPairs",
    "BallotNetwork",
    "Bits",
    "Budget",
    "Certificates",
    "Certified",
    "Directed",
    "Flip",
    "Hashed",
    "Hide",
    "Inject",
    "Intercept",
    "Intercepted",
    "Keep",
    "LabelBallots",
    "Mask",
    "PairBallots",
    "Pairs",
    "Proofs",
    "RayRunner",
    "Relation",
    "Row",
    "SerialRunner",
    "Smoothed",
    "Snapshot",
    "Target",
    "TopCertificates",
    "UntilSize",
    "Votes",
    "__version__",
    "best_of",
    "certify",
    "certify_intercepted",
    "certify_top",
    "chosen_on",
    "errors",
    "flagged",
    "load",
    "meaning_of",
    "noisy",
    "plot_accuracy",
    "poll",
    "prospect",
    "prove",
    "receptive_fields",
    "theory",
    "write_report",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'unswayed' has no attribute {name!r}")
    module = importlib.import_module(home)
    value = module if home == f"unswayed.{name}" and not hasattr(module, name) else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
