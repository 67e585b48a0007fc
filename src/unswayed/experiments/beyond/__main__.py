"""`python -m unswayed.experiments.beyond`: the work alone."""

from unswayed.experiments.beyond import main

main()
