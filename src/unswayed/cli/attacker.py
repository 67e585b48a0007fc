"""One attacker with a total budget, on the command line: by the programme where that is allowed, else by counting."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # scipy and torch load when a command runs, not when it is asked for help
    from unswayed.certificates import Certified
    from unswayed.cli.plan import Plan
    from unswayed.cli.record import Record


def one_attacker(record: "Record", certs: "Certified", budget: int | None) -> dict[str, Any] | None:
    """What so many changes in total can do, JSON-ready; where the noise adds nothing, what so many deletions can do as well.

    `at_most` is None where nothing can be said, `how` says which bound it is.
    """
    from unswayed.certificates.shared import of_the_silent

    if budget is None:
        return None
    told = _told(certs, budget, "any", None)
    fields = _fields(record, certs)
    fewer = None if fields is None else _told(certs, budget, "deletes", fields)
    sentence = told["sentence"]
    if fewer is not None:
        sentence = f"{sentence.removesuffix(of_the_silent(certs))} {fewer['sentence']}"
    sentence = sentence.replace("certify with family=True", "certify with --family")
    return {"budget": budget, **told, "deletions": fewer, "sentence": sentence}


def _told(certs: "Certified", budget: int, change: str, fields: Any) -> dict[str, Any]:
    from unswayed.certificates.shared import how_shared
    from unswayed.errors import Unsupported

    sentence = certs.shared_in_words(budget, change=change, fields=fields)
    try:
        most = certs.shared(budget, change=change, fields=fields)
        return {"at_most": most, "how": how_shared(certs, fields), "sentence": sentence}
    except Unsupported:
        return {"at_most": None, "how": None, "sentence": sentence}


def _fields(record: "Record", certs: "Certified") -> Any:
    """The edges that each target can see; None where that is not known, or would not count."""
    from unswayed.errors import Unsupported
    from unswayed.sampling.fields import receptive_fields

    if record.sees is None or record.graph is None or isinstance(record.graph, tuple):
        return None
    try:
        certs.check_fields("deletes")
    except Unsupported:
        return None
    import torch
    from torch_geometric.data import Data

    graph, sees = record.graph, record.sees
    data = Data(edge_index=torch.tensor(graph.edge_index), num_nodes=graph.num_nodes)
    return receptive_fields(data, certs.targets, sees["layers"], degrees=sees["degrees"])


def sees(plan: "Plan", threat: Any, model: Any) -> dict[str, Any] | None:
    """How far a model can see, to be kept with a run; None where that is not known or of no use."""
    from unswayed.cli.flags import asked
    from unswayed.errors import Unsupported
    from unswayed.sampling.fields import sight
    from unswayed.sampling.question import Question

    if plan.edge_attr is not None or not plan.noise.only_hides or threat.whole_view() is None:
        return None
    wrapped = asked(plan, model)
    question = Question(wrapped, threat, plan.noise, classes=plan.dataset.num_classes, device=plan.device)
    try:
        return sight(wrapped, question)._asdict()
    except Unsupported:
        return None
