"""`python -m sellf` is `sellf`."""

from sellf.cli import entry

entry()
