"""The version, in a module of its own: nothing has to import the package for it."""

__version__ = "0.1.0"
