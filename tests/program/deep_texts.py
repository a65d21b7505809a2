"""Texts that are deep, long, or strange, by name: what a model may answer and a file may hold."""

DESTROY = "def destroy(dist, current_tour, steps_since_improvement, rng):\n"
REPAIR = (
    "def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):\n"
    "    return partial_tour + removed_nodes\n"
)
RETURN = "    return current_tour[3:], current_tour[:3]\n"

# What an expression can be put into, as often as one likes: {} is the expression.
NESTS = {
    "sum": "1+{}", "sum-left": "{}+1", "strings": "'a'+{}", "power": "1**{}", "parentheses": "({})",
    "minus": "-{}", "not": "not {}", "call": "int({})", "called": "({})()", "keyword": "f(a={})",
    "star": "[*{}]", "kwargs": "f(**{})", "attribute": "({}).real", "subscript": "dist[{}]",
    "subscripted": "({})[0]", "slice": "dist[{}:1]", "comparison": "(1 < {})", "and": "(1 and {})",
    "or": "({} or 0)", "if": "({} if 1 else 0)", "else": "1 if 0 else {}", "lambda": "lambda: {}",
    "default": "(lambda a={}: a)", "list": "[{}]", "tuple": "({},)", "dict": "{{1: {}}}",
    "key": "{{{}: 1}}", "set": "{{{}}}", "walrus": "(a := {})", "listed": "[1 for a in {}]",
    "element": "[{} for a in b]", "filter": "(1 for a in b if {})", "yield": "(yield {})",
    "await": "await {}", "f-string": "f'{{{}}}'",
}  # fmt: skip


def nested(names: list[str], times: int) -> str:
    """The wrappers of some names in turn, `times` in all, around a number."""
    text = "1"
    for k in range(times):
        text = NESTS[names[k % len(names)]].format(text)
    return text


def holding(expression: str) -> str:
    """A destroy program that is lawful if the expression is."""
    return f"{DESTROY}    if not dist:\n        x = {expression}\n{RETURN}"


def statements(n: int) -> dict[str, str]:
    """Programs that are deep or long by their statements and patterns, not by an expression."""
    blocks = "".join(f"{' ' * (k + 1)}{{}}\n" for k in range(n))
    inner = " " * (n + 1) + "pass\n"

    def block(head: str) -> str:
        return DESTROY + blocks.replace("{}", head) + inner + RETURN.replace("    ", " ")

    def case(pattern: str) -> str:
        return f"{DESTROY}    match dist:\n        case {pattern}:\n            pass\n{RETURN}"

    def before(text: str) -> str:
        return text + DESTROY + RETURN

    return {
        "elif": DESTROY + "    if 0: pass\n" + "    elif rng.random() < 0: pass\n" * n + RETURN,
        "else-if": DESTROY + "    for a in dist: pass\n    else: pass\n" * n + RETURN,
        "for": block("for a in dist:"),
        "while": block("while 0:"),
        "if": block("if 1:"),
        "functions": block("def f(a):"),
        "try": block("try:"),
        "list pattern": case("[" * n + "_" + "]" * n),
        "dict pattern": case("{1:" * n + "_" + "}" * n),
        "or pattern": case("|".join(["1"] * n)),
        "dotted pattern": case("a" + ".b" * n),
        "annotation": f"{DESTROY}    x: {'list[' * n}int{']' * n} = 1\n{RETURN}",
        "union": f"{DESTROY}    x: {'int|' * n}int = 1\n{RETURN}",
        "decorators": before("@f\n" * n),
        "decorator": before("@" + "f(" * n + ")" * n + "\n"),
        "assignments": before("a = " * n + "1\n"),
        "constants": before("".join(f"A{k} = {k}\n" for k in range(n))),
        "chain of constants": before(
            "".join(f"A{k} = lambda: A{k + 1}()\n" for k in range(n)) + f"A{n} = 1\n"
        ).replace(RETURN, f"    A0\n{RETURN}"),
        "helpers": before("".join(f"def f{k}():\n    return f{k + 1}()\n" for k in range(n))),
        "one line": before("a=1;" * n + "\n"),
        "imports": before("".join(f"from math import sqrt as s{k}\n" for k in range(n))),
        "module": before("import " + ".".join("a" * n) + "\n"),
        "names": before("".join(f"def f{k}(): pass\n" for k in range(2)) + "g" * n + " = 1\n"),
        "dedents": DESTROY + "    if 1:\n" + " " * n + "pass\n  pass\n",
        "adjacent strings": holding(" ".join(["'a'"] * n)),
        "long line": holding(",".join(["1"] * n)),
        "comparisons": holding("<".join(["1"] * n)),
        "calls": holding("f" + "()" * n),
        "attributes": holding("rng" + ".random" * n),
        "decimal": holding("1" * 9 * n),
        "hexadecimal": holding("0x" + "f" * 9 * n),
        "octal": holding("0o" + "7" * 9 * n),
        "float": holding("1" * n + "." + "1" * n + "e9999"),
        "unclosed": holding("[(" * n),
        "closed": holding("1" + "])" * n),
        "brace": holding("{a: b, **" * n),
        "quotes": holding("'" * (2 * n + 1)),
        "backslashes": holding("\\\n" * n + "1"),
    }


STRANGE = {
    "null": DESTROY + "    x = '\0'\n" + RETURN,
    "escaped null": DESTROY + "    '\\0'\n" + RETURN,
    "surrogate": DESTROY + "    '\ud800'\n" + RETURN,
    "escaped surrogate": DESTROY + "    '''Say \\ud800 and \\udfff.'''\n" + RETURN,
    "escaped return": DESTROY + "    'a\\rb\\x0cc\\x1b[31md\\u2028e'\n" + RETURN,
    "byte order mark": "\ufeff" + DESTROY + RETURN,
    "form feeds": "\x0c" + DESTROY + "\x0c" + RETURN + "\x0c\n",
    "vertical tab": DESTROY + "    x = 1\x0b\n" + RETURN,
    "line separator": DESTROY + "    x = '\u2028'  # \u2029\x85\x1c\n" + RETURN,
    "returns": (DESTROY + RETURN).replace("\n", "\r"),
    "crlf": (DESTROY + RETURN).replace("\n", "\r\n"),
    "tabs": (DESTROY + RETURN).replace("    ", "\t"),
    "tabs and spaces": DESTROY + "\tif 1:\n        x = 1\n\t" + RETURN.strip() + "\n",
    "continuation": DESTROY + "    x = 1 \\\n        + 1\n" + RETURN,
    "continued end": DESTROY + RETURN[:-1] + " \\\n\n",
    "continued statements": "x = 1; \\\ny = 2; z=\\\n3\n" + DESTROY + RETURN,
    "decorator below its sign": "@(\n  f\n)\n" + DESTROY + RETURN,
    "decorator after a continuation": "@ \\\n  f\n" + DESTROY + RETURN,
    "invalid escapes": DESTROY + "    x = '\\d', b'\\d', f'\\d{1}'\n" + RETURN,
    "number and keyword": DESTROY + "    x = 1if 1else 2\n" + RETURN,
    "is": DESTROY + "    x = 1 is 1, (1, 2)(3)\n    assert (1, 2)\n" + RETURN,
    "same line": DESTROY[:-1] + " return current_tour[3:], current_tour[:3]",
    "wide letters": DESTROY + "    \ufb01 = 1; x = '\U0001f600\u200d'\n" + RETURN,
    "spaces": "\u00a0" + DESTROY + "\u3000" + RETURN,
    "newline in an f-string": DESTROY + "    x = f'''{'''a\nb'''}'''\n" + RETURN,
    "type": "type X = int\n" + DESTROY + RETURN,
    "cookie": "# -*- coding: latin-1 -*-\n" + DESTROY + RETURN,
    "unknown cookie": "# coding: nothing\n" + DESTROY + RETURN,
}
