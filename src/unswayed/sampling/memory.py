"""How it shows that memory ran out."""

import torch


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on any device, which says nothing of the classifier."""
    words = str(error).lower()
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        "out of memory" in words or "can't allocate memory" in words or "not enough memory" in words
    )
