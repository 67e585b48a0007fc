"""One family of errors: whatever goes wrong, `except UnswayedError` catches it and its message is one sentence.

`InputError` means the caller can mend it (the command line exits with 2); `WorldError` means disk, network or another
machine failed (exit code 1).
"""


class UnswayedError(Exception):
    """Base of every error this package raises on purpose."""


class InputError(UnswayedError, ValueError):
    """Something handed to the package is wrong; the message says what and what to do."""


class UnknownKeyword(InputError, TypeError):
    """A function was called with a keyword that it does not have."""


class DoubtfulSetting(UserWarning):
    """Allowed, and hardly ever meant; the message says what it does."""


class UnsoundModel(InputError):
    """The classifier cannot be certified as it stands; the message says why and how to mend it."""


class RefusedVotes(InputError):
    """Answers that were counted are not those of the classifier asked one graph at a time; nothing may be certified."""


class Unsupported(InputError):
    """The chosen engine cannot run this classifier exactly; the message names the obstacle."""


class StoreError(InputError):
    """A stored run or vote file cannot be used: unreadable, altered, or made by different settings."""


class WorldError(UnswayedError, OSError):
    """The disk, the network or another machine failed; nothing is wrong with the input."""
