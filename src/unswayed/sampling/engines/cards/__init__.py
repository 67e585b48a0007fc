"""Kernels for a CUDA card, each beside the plain operations that it replaces."""
