"""A runner that notes what it was asked."""

from unswayed.runners import SerialRunner


class Recorder(SerialRunner):
    """Notes which blocks were drawn; may stop after a number of them like somebody pressing Ctrl-C."""

    def __init__(self, stop_after=None, backwards=False):
        super().__init__()
        self.blocks, self.stop_after, self.backwards = [], stop_after, backwards

    def run(self, question, blocks):
        for block, counts in super().run(question, list(reversed(blocks)) if self.backwards else blocks):
            if self.stop_after is not None and len(self.blocks) == self.stop_after:
                raise KeyboardInterrupt
            self.blocks.append((block.start, block.stop))
            yield block, counts
