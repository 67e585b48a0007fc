"""How ballot networks are trained."""

from dataclasses import dataclass

from unswayed.errors import InputError

CHANGES = ("any", "adds")
USUAL = 5  # changes of a row
FEW = 2  # changes up to which proofs count where features say more than links and nobody named a size


@dataclass(frozen=True)
class BallotSettings:
    """What the network is to withstand, and how it learns it. The page of choices tells how these came about."""

    attack_size: int | None = None  # changes to withstand, up to which proofs count; None: five, or few
    change: str = "any"  # which ones: any, or additions alone
    voters: str = "two-hop"
    taus: tuple[float, ...] = (2.0, 10.0, 50.0)  # how much a node's own word weighs; each is tried
    hidden: int = 64
    steps: int = 300
    warm_up: int = 50  # steps before the worst case begins to count; from the first step, networks collapse
    worst_weight: float = 0.5
    sharpness: float = 6.0  # logits are margins per link times this
    lr: float = 0.01
    weight_decay: float = 5e-5
    input_dropout: float = 0.5
    batch: int = 1024
    check_every: int = 20
    patience: int = 160  # steps without a better judgement, after which a candidate is left
    balanced: bool = False  # every class weighs the same, however rare
    distil: bool = True  # own scores may learn a teacher's answers
    presume: bool = True  # voters may say labels presumed without the test nodes' links, where it helps
    meaning: bool = True  # labels may speak for other classes, where like does not go with like

    def __post_init__(self) -> None:
        if self.change not in CHANGES:
            raise InputError(f"change must be one of {', '.join(CHANGES)}, not {self.change!r}.")
        size = self.withstood
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise InputError(
                f"The attack size to train against must be a whole number from 1 up, not {self.attack_size!r}."
            )

        if not self.taus or min(self.taus) <= 0:
            raise InputError(f"taus must name at least one weight above 0, not {self.taus!r}.")
        if self.check_every < 1 or self.steps < 1:
            raise InputError("steps and check_every must be 1 or more.")

    @property
    def withstood(self) -> int:
        """Changes of a row that the worst-case loss allows for."""
        return USUAL if self.attack_size is None else self.attack_size

    @property
    def counted_to(self) -> int:
        """The last size that counts where features say more than links: who names a size wants proofs of it."""
        return FEW if self.attack_size is None else self.attack_size

    @property
    def judged_at(self) -> tuple[int, ...]:
        """The sizes at which validation nodes judge: none, a few, the size trained against, and twice that, but none beyond it."""
        last = 2 * self.withstood
        return tuple(sorted({size for size in (0, 1, 2, 3, self.withstood, last) if size <= last}))

    def worst_share(self, step: int) -> float:
        """How much of the loss the worst case is in this step."""
        return self.worst_weight * min(max(step - self.warm_up, 0) / max(self.warm_up, 1), 1.0)
