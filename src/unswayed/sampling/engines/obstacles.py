"""Why an engine is not used."""


class Elsewhere(str):
    """An obstacle that says only that the engine is for other threats or noises: nothing that another model would change."""
