"""What is exact: models whose answer is a sum of what each entry says, or a vote of separate parts of the graph."""
