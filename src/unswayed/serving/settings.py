"""Settings: how a service asks, apart from the model and the graph."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from unswayed.ballots.claims import check_order
from unswayed.certificates import certify
from unswayed.polling import device_of, whole_samples
from unswayed.sampling.beforehand import check_instance, check_surroundings, named_classes
from unswayed.sampling.question import Question
from unswayed.sampling.threats import Threat
from unswayed.theory.noise import Noise, noise_from_dict
from unswayed.votes import Votes


@dataclass(frozen=True)
class Settings:
    """How many samples, at which level, by which bounds, and where; checked when it is made."""

    noise: Noise | None
    samples: int
    alpha: float
    bounds: str
    rivals: str
    classes: Any  # how many, or their names
    device: str | None
    engine: str
    batch_size: int | None
    progress: bool | None

    def __post_init__(self) -> None:
        whole_samples(self.samples)
        count, names = named_classes(None, self.classes)
        object.__setattr__(self, "classes", names or count)
        if self.noise is not None:
            trial = Votes.from_counts([[1, 0]], self.noise, entries=2, ones=1)
            certify(trial, alpha=self.alpha, bounds=self.bounds, rivals=self.rivals)  # refuses what is wrong

    def question(self, model: Any, threat: Threat) -> Question:
        """What is asked of whom, but for the seed."""
        assert self.noise is not None
        check_instance(model)
        check_surroundings()
        check_order(model, threat)
        count, _ = named_classes(model, self.classes)
        return Question(
            model=model,
            threat=threat,
            noise=self.noise,
            classes=count,
            device=self.device or device_of(model),
            engine=self.engine,
            batch_size=self.batch_size,
        )

    def names(self, model: Any) -> list[Any]:
        """What the labels are called; empty where nobody says."""
        return named_classes(model, self.classes)[1]

    def words(self, model: Any) -> dict[str, Any]:
        """The same as votes keep it."""
        names = self.names(model)
        return {"words": {"classes": names}} if names else {}

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {**asdict(self), "noise": None if self.noise is None else self.noise.to_dict()}

    def told(self) -> dict[str, Any]:
        """What matters to whoever asks: without noise nothing is sampled, and nothing has a level."""
        return self.to_dict() if self.noise is not None else {"noise": None, "classes": self.classes}

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> "Settings":
        """What `to_dict` wrote."""
        noise = told["noise"]
        return cls(**{**told, "noise": None if noise is None else noise_from_dict(noise)})
