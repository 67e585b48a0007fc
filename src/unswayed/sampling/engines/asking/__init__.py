"""The module itself, asked: one noisy graph at a time, many in a batch, and what faster ways are held against."""
