"""What is proven: noise, likelihood-ratio regions, confidence bounds and the certified size. Pure functions, no torch."""
