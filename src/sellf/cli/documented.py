"""The docstrings of a dataclass's fields, which are the help of the corresponding flags."""

import ast
import dataclasses
import inspect
import textwrap


def documented(config: type) -> dict[str, str]:
    """Return the docstring of each field of a dataclass, in order, as one line."""
    texts: dict[str, str] = {}
    for owner in reversed(config.__mro__):
        if dataclasses.is_dataclass(owner):
            texts |= own_docs(owner)
    return {field.name: texts[field.name] for field in dataclasses.fields(config)}


def own_docs(owner: type) -> dict[str, str]:
    """Return the docstrings of the fields that a class declares itself."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    assert isinstance(tree, ast.ClassDef)
    return {
        ast.unparse(field.target): " ".join(str(ast.literal_eval(below.value)).split())
        for field, below in zip(tree.body, tree.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr)
    }
