"""What a module computes, as a plan: how it is read, written down and rewritten, and what its layers mean."""
