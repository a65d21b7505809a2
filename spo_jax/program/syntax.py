"""Syntax trees of untrusted texts: parses within bounds, compares, unparses.

Python's own `ast.dump`, `ast.unparse`, `ast.NodeTransformer` and compiler recurse, some with six
frames per level of the tree, so a text that parses can still crash them. A tree from here has at
most MAX_DEPTH levels, which is safe for all of them.
"""

import ast
import threading
import warnings

from spo_jax.errors import Rejection

# Levels of the tree, with the module as the first. `ast.unparse` then needs 600 of Python's 1,000
# frames. Of 13,000 files of Python's library and of packages three are deeper, with generated
# formulas; handwritten functions have 15 levels, seldom 40.
MAX_DEPTH = 100
MAX_BITS = 2_048  # of an integer literal: fewer digits than the 640 that Python always prints
# One thread at a time: up to Python 3.12 parallel parsers share a depth counter and can fail with a
# SystemError; the warning filter is global, too.
_parser = threading.Lock()
_TOO_DEEP = f"nested too deeply (at most {MAX_DEPTH} levels of syntax)"


def parse_tree(source: str) -> ast.Module:
    """Parse `source` within bounds.

    Args:
        source: Python text, which may be hostile.

    Returns:
        The syntax tree.

    Raises:
        Rejection: Python's parser fails, or the tree has more than MAX_DEPTH levels or an integer
            of more than MAX_BITS bits.
    """
    try:
        with _parser, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ignore invalid escapes
            tree = ast.parse(source)
    except SyntaxError as error:
        where = f" in line {error.lineno}" if error.lineno else ""
        raise Rejection(f"syntax error{where}: {error.msg}") from None
    except (RecursionError, MemoryError):
        raise Rejection(_TOO_DEEP) from None
    except ValueError as error:
        raise Rejection(f"unreadable source: {error}") from None
    _check_bounds(tree)
    return tree


def _check_bounds(tree: ast.Module) -> None:
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return
        for node in level:
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, int)
                and node.value.bit_length() > MAX_BITS
            ):
                raise Rejection(f"line {node.lineno}: an integer of more than {MAX_BITS} bits")
    raise Rejection(_TOO_DEEP)


def flat(tree: ast.AST) -> tuple[object, ...]:
    """A tree without its positions, as one flat tuple: equal for equal trees, and for no others."""
    found: list[object] = []
    pending: list[object] = [tree]
    while pending:
        each = pending.pop()
        if isinstance(each, ast.AST):
            found.append(type(each))
            pending += [getattr(each, name, None) for name in reversed(each._fields)]
        elif isinstance(each, list):
            found.append((list, len(each)))
            pending += reversed(each)
        else:
            found.append((type(each), each))
    return tuple(found)


def unparse(tree: ast.AST) -> str:
    """Write a text that parses to `tree`.

    Raises:
        Rejection: Python cannot unparse it, as with some strings inside f-strings.
    """
    try:
        return ast.unparse(ast.fix_missing_locations(tree))
    except RecursionError:
        raise Rejection(_TOO_DEEP) from None
    except ValueError as error:
        raise Rejection(f"its syntax tree cannot be unparsed: {error}") from None
