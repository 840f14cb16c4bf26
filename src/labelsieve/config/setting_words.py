"""What each setting means, in words by its dotted key: the comments beside the fields in config.py, so that one place says it."""

import ast
import inspect
import io
import tokenize
from collections.abc import Iterator
from functools import cache

from labelsieve.config import schema as config


@cache
def setting_words() -> dict[str, str]:
    """{"training.batch": "labelled identities a step, ..."}; empty where the package was installed without its source."""
    try:
        source = inspect.getsource(config)
    except OSError:
        return {}
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
    classes = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)}
    return dict(_words(classes, "Config", comments))


def _words(classes: dict[str, ast.ClassDef], name: str, comments: dict[int, str], head: str = "") -> Iterator[tuple[str, str]]:
    """Key and words of every field of a class, and of the classes that its fields are."""
    for node in classes[name].body:
        if isinstance(node, ast.AnnAssign):
            key, kind = ast.unparse(node.target), ast.unparse(node.annotation)
            if kind in classes:
                yield from _words(classes, kind, comments, f"{head}{key}.")
            else:
                yield head + key, comments.get(node.lineno, "")
