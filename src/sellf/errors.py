"""Errors that are for the person who typed something, not for whoever mends the code."""


class InputError(ValueError):
    """What was given cannot be used; the message says what to type instead.

    The command line prints the message alone and ends with exit code 2.
    """
