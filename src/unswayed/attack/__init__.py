"""Attacks on the smoothed classifier: they can refute a certificate and bound its truth from above, never prove one.

Within the certified size every attack must fail; one that succeeds is a soundness bug. Beyond it, the smallest attack that
succeeds is an upper bound on the true robust size, to be set beside the certified lower bound.
"""

from unswayed.attack.harness import Attacks, Breach, attack
from unswayed.attack.proposals import KINDS

__all__ = ["KINDS", "Attacks", "Breach", "attack"]
