"""Which names belong to a module: against Python's own symbol tables, and renaming by scope."""

import ast
import re
import symtable
from pathlib import Path

import pytest

from spo_jax.program.scopes import Import, Statement, rename, split

LAWFUL = sorted((Path(__file__).parents[1] / "programs" / "lawful").glob("*.py"))

SNIPPETS = [
    "def f(a, b=x, *c, d=y, **e):\n    return a, b, c, d, e, z",
    "def f(a: note, *rest: other) -> back:\n    return [a for a in a if k]",
    "def f():\n    return {k: v for k, v in items for v in v}, {u for u in w}, k, v",
    "def f():\n    return [inner for a in outer for inner in a if (last := inner)], last, a",
    "def f():\n    g = lambda a, b=c: a + b + d + (w := e) + w\n    return g, w, a",
    "def f():\n    global n\n    n = 1\n    def g():\n        return n, m\n    m = n\n    return g",
    "def f():\n    a = 1\n    def g():\n        nonlocal a\n        a = b\n    return g",
    "def f():\n    def g(x):\n        return g(x - 1) + f(x)\n    return g",
    "def f():\n    try:\n        import a.b, c as d\n    except E as error:\n        raise error\n"
    "    with a as (p, q):\n        return d, p, q, b",
    "def f(x):\n    match x:\n        case [a, *b]:\n            return a, b\n"
    "        case {'k': c, **d}:\n            return c, d\n"
    "        case C(e) as g:\n            return e, g",
    "def f(x):\n    for a, (b, *c) in x:\n        a += 1\n    del b\n    return f'{a} {e!r:>{w}}'",
    "x: int = (lambda y: y)(z)",
    "a, (b, *c) = [b for b in d]",
    "def f(x=[y for y in z]):\n    return (yield x)",
    "async def f():\n    async with a as b:\n        return [c async for c in b]",
]


class Lazy(ast.NodeTransformer):
    """Lists and sets as generators: since Python 3.12 only those have tables of their own."""

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp) -> ast.AST:
        self.generic_visit(node)
        return ast.GeneratorExp(node.elt, node.generators)

    visit_SetComp = visit_ListComp


def global_names(text: str) -> set[str]:
    """Names that the symbol tables of Python place in the module or beyond."""
    found = set()
    text = ast.unparse(Lazy().visit(ast.parse(text)))
    tables = [symtable.symtable(text, "text", "exec")]
    while tables:
        table = tables.pop()
        top = table.get_type() == "module"
        found |= {each.get_name() for each in table.get_symbols() if top or each.is_global()}
        tables += table.get_children()
    return found


@pytest.mark.parametrize("text", SNIPPETS)
def test_names_agree_with_the_symbol_table(text):
    assert Statement(text).uses == global_names(text)


@pytest.mark.long
def test_names_agree_on_lawful_programs():
    assert LAWFUL
    for path in LAWFUL:
        text = path.read_text("utf-8")
        if re.search(r"@[A-Z]+[ @]", text):  # a recipe for a text, not one itself
            continue
        _, statements = split(text)
        for statement in statements:
            assert statement.uses == global_names(statement.text), path.name


@pytest.mark.parametrize("text", SNIPPETS)
def test_renaming_moves_module_names_only(text):
    statement = Statement(text)
    names = {name: f"{name}_new" for name in statement.uses}
    renamed = rename(statement, names)
    assert renamed.uses == {names[name] for name in statement.uses}
    assert renamed.local_names == statement.local_names
    back = rename(renamed, {new: old for old, new in names.items()})
    assert ast.dump(back.node) == ast.dump(statement.node)


def test_renaming_keeps_layout_and_comments():
    text = "# K above\ndef f(x,  y=K):  # K\n    '''K'''\n    return  K + [K for K in x][0]"
    assert rename(Statement(text), {"K": "NEW"}).text == (
        "# K above\ndef f(x,  y=NEW):  # K\n    '''K'''\n    return  NEW + [K for K in x][0]"
    )


def test_split_keeps_comments_with_their_statement():
    text = (
        "# far\n\n# above\nA = 1; B = 2  # behind\n\n"
        "def f():\n    return A\n    # below\n# next\nC = 3\n"
    )
    imports, statements = split("import a.b, c as d\nfrom ..e import f as g\n" + text)
    assert imports == (Import("a", "a.b"), Import("d", "c"), Import("g", "..e", "f"))
    assert [each.text for each in statements] == [
        "# above\nA = 1",
        "B = 2  # behind",
        "def f():\n    return A\n    # below",
        "# next\nC = 3",
    ]
    for each, node in zip(statements, ast.parse(text).body, strict=True):
        assert ast.dump(ast.parse(each.text).body[0]) == ast.dump(node)
