"""Words of commands that several tests change."""


def plain(own):
    """The words without their noise."""
    at = own.index("--beta")
    return own[:at] + own[at + 2 :]
