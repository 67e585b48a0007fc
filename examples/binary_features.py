"""How many pixels must change before a scikit-learn classifier reads another digit?

The theorem is about zeros and ones, not about graphs. Here each target is a picture of 8 × 8 black or white pixels, and the
attacker may flip any of the 64. The classifier is an ordinary random forest, trained on noisy pictures, because noisy
pictures are what it will be asked about. The data ship with scikit-learn; nothing is downloaded.

    python examples/binary_features.py --samples 1000
"""

import argparse

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import unswayed as us


def pictures(seed: int) -> list[np.ndarray]:
    """Black and white digits: train and test pictures, train and test labels."""
    digits = load_digits()
    return train_test_split(digits.data > 7, digits.target, test_size=0.3, random_state=seed)


def train(x: np.ndarray, y: np.ndarray, beta: float, copies: int, seed: int) -> RandomForestClassifier:
    """A forest that has seen each picture under several draws of the noise."""
    generator = np.random.default_rng(seed)
    noisy = np.concatenate([x ^ (generator.random(x.shape) > beta) for _ in range(copies)])
    forest = RandomForestClassifier(n_estimators=50, min_samples_leaf=2, random_state=seed, n_jobs=1)
    return forest.fit(noisy, np.tile(y, copies))


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--samples", type=int, default=1000, help="noisy copies of each picture")
    options.add_argument("--targets", type=int, default=20, help="how many test pictures to certify")
    options.add_argument("--beta", type=float, default=0.9, help="probability that a pixel keeps its value")
    options.add_argument("--seed", type=int, default=0)
    asked = options.parse_args()

    x_train, x_test, y_train, y_test = pictures(asked.seed)
    forest = train(x_train, y_train, asked.beta, copies=5, seed=asked.seed)
    print(f"accuracy on clean test pictures: {forest.score(x_test, y_test):.3f}")

    threat = us.Bits(x_test[: asked.targets])
    votes = us.poll(forest, threat, us.Flip(beta=asked.beta), samples=asked.samples, seed=asked.seed)
    certs = us.certify(votes, alpha=0.001)

    truth = y_test[: asked.targets]
    sizes = [0, 1, 2, 3]
    for size, accuracy in zip(sizes, certs.accuracy(truth, at=sizes), strict=True):
        print(f"right and proven against any {size} flipped pixels: {accuracy:.0%}")
    strongest = int(certs.size.argmax())
    print(certs.statement(strongest))


if __name__ == "__main__":
    main()
