"""Engines: ways of asking the classifier. All give the same votes, but for logits that tie within rounding."""

import warnings
from typing import TYPE_CHECKING

from torch import Tensor

from unswayed.errors import Unsupported
from unswayed.sampling.engines.engine import Elsewhere, Engine, FastEngine
from unswayed.sampling.question import Question
from unswayed.sampling.threads import few, threads
from unswayed.sampling.threats.base import Threat

if TYPE_CHECKING:
    from unswayed.sampling.engines.asking.generic import GenericEngine

__all__ = ["Engine", "choose"]


def choose(question: Question) -> Engine:
    """The fastest engine that is exact for the question and agreed with the classifier asked one graph at a time."""
    with threads(few(question.device)):  # what prepares and tries is short, and no engine's timing covers it
        return _chosen(question)


def _chosen(question: Question) -> Engine:
    from unswayed.sampling.engines.asking.generic import GenericEngine

    generic = GenericEngine(question)  # also refuses unsound classifiers, whichever engine runs in the end
    if question.engine == "generic":
        generic.why = "engine='generic' was asked for"
        return generic
    obstacles: dict[str, list[str]] = {}  # and for which engines
    for candidate in _fast_engines():
        try:
            engine, obstacle = _tried(candidate, generic)
        except Exception as error:  # whatever the classifier's own code raises when it is taken apart
            engine, obstacle = None, f"it failed on this classifier ({_first_line(error)})"
            if question.engine == "auto":
                warnings.warn(f"The {candidate.name} engine is not used: {obstacle}.", stacklevel=4)
        if engine is not None:
            return engine
        if not isinstance(obstacle, Elsewhere):
            obstacles.setdefault(obstacle, []).append(candidate.name)
    told = [f"{' and '.join(names)}: {obstacle}" for obstacle, names in obstacles.items()]
    generic.why = "; ".join(told) or "there is none for this threat and noise"
    if question.engine == "fast":
        raise Unsupported(
            f"No fast engine is exact for this classifier ({generic.why}); use engine='generic'."
        )
    return generic


def _tried(candidate: type[Engine], generic: "GenericEngine") -> tuple[Engine | None, str]:
    """The engine, if it is exact for the question and agrees with the classifier; otherwise the obstacle."""
    from unswayed.sampling.engines.asking.probing import agree

    question = generic.question
    if question.threat.edge_function is not None:
        return None, "edges carry attributes, which it does not know"
    if (obstacle := candidate.supports(question)) is not None:
        return None, obstacle
    if not _finite(question.threat):
        return None, "some features are no finite numbers, which sums over all nodes would spread"
    if issubclass(candidate, FastEngine) and not generic.alone.as_traced:
        return (
            None,
            "a call takes another way through the module's code than torch.fx, which is handed no tensors",
        )
    engine = candidate(question)
    if agree(engine, generic.alone, question):
        return engine, ""
    obstacle = "its answers to a probe differ from those of the classifier asked one graph at a time"
    if question.engine == "auto":
        warnings.warn(f"The {candidate.name} engine is not used: {obstacle}.", stacklevel=5)
    return None, obstacle


def _finite(threat: Threat) -> bool:
    """Whether all features are: nothing times a number is nothing, but not times infinity."""
    graphs = getattr(threat, "graphs", None) or [getattr(threat, "graph", None)]
    features = [getattr(graph, "x", None) for graph in graphs] + [getattr(threat, "x", None)]
    some = [x for x in features if isinstance(x, Tensor) and x.numel()]
    return all(bool(end.isfinite()) for x in some for end in x.aminmax())  # much faster than asking of each


def _first_line(error: Exception) -> str:
    said = str(error).strip().splitlines()
    return f"{type(error).__name__}: {said[0][:200]}" if said else type(error).__name__


def _fast_engines() -> list[type[Engine]]:
    """The fast engines in the order in which they are tried; imported here, because each imports this module."""
    from unswayed.sampling.engines.asking.whole import WholeGraphEngine
    from unswayed.sampling.engines.graphs.dense import DenseEngine
    from unswayed.sampling.engines.graphs.plan_engine import PlanEngine
    from unswayed.sampling.engines.rows.apart import RowsApartEngine
    from unswayed.sampling.engines.rows.engine import RowEngine
    from unswayed.sampling.engines.rows.few import FewEngine
    from unswayed.sampling.engines.rows.kept import KeptEngine

    rows = [RowsApartEngine, FewEngine, KeptEngine, RowEngine]
    return [*rows, PlanEngine, DenseEngine, WholeGraphEngine]
