"""`python -m unswayed.experiments.hiding`: the work alone."""

from unswayed.experiments.hiding import main

main()
