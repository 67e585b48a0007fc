"""`python -m unswayed.experiments.paying`: the work alone."""

from unswayed.experiments.paying import main

main()
