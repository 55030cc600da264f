"""What ends a measurement."""


class BenchFailed(Exception):
    """A run did not come to its end; the message tells which and how far it was."""
