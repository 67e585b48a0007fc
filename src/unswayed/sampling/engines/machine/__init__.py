"""What the machine has: its cores, its memory, and how much of a batch fits."""
