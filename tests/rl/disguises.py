"""How a text may hold a key without showing it, and how that is found out."""

import base64
import re
from urllib.parse import quote

from tests.rl.chat_server import KEY


def escaped(key):
    return "".join(f"\\u{ord(c):04x}" for c in key)


def percented(key):
    return "".join(f"%{ord(c):02x}" for c in key)


WAYS = {
    "as it is": lambda key: key,
    "inside": lambda key: f"abc{key}def",
    "upper": lambda key: key.upper(),
    "swapped": lambda key: key.swapcase(),
    "reversed": lambda key: key[::-1],
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64 of more": lambda key: base64.b64encode(f"Bearer {key}!".encode()).decode(),
    "base64 in lines": lambda key: base64.encodebytes(f"{'x' * 50}{key}".encode()).decode(),
    "base64 for addresses": lambda key: base64.urlsafe_b64encode(f"y{key}".encode()).decode(),
    "base64 of the reversed": lambda key: base64.b64encode(key[::-1].encode()).decode(),
    "reversed base64": lambda key: base64.b64encode(key.encode()).decode()[::-1],
    "hexadecimal": lambda key: key.encode().hex(),
    "hexadecimal with colons": lambda key: key.encode().hex(":"),
    "percent": percented,
    "quoted": lambda key: quote(f"/{key}/", safe=""),
    "percent twice": lambda key: percented(key).replace("%", "%25"),
    "escapes": escaped,
    "escapes twice": lambda key: escaped(key).replace("\\", "\\\\"),
    "percent of escapes": lambda key: quote(escaped(key)),
    "escapes of some": lambda key: key.replace("s", "\\u0073").replace("e", "\\x65"),
    "octal": lambda key: "".join(f"\\{ord(c):03o}" for c in key),
    "html": lambda key: "".join(f"&#{ord(c)};" for c in key),
    "spaced": lambda key: " ".join(key),
    "in lines": lambda key: "\n".join(key),
    "added": lambda key: f'"{key[:9]}" + "{key[9:]}"',
    "with a break": lambda key: f"{key[:9]}\\n{key[9:]}",
    "with nothing between": lambda key: "\u200b".join(key),
    "wide": lambda key: "".join(chr(ord(c) + 0xFEE0) for c in key),
    "accented": lambda key: "".join(f"{c}\u0301" for c in key),
    "braces": lambda key: "".join(f"\\x{{{ord(c):02x}}}" for c in key),
    "percent with u": lambda key: "".join(f"%u{ord(c):04x}" for c in key),
    "in a half of itself": lambda key: f"{key[:9]}{key}{key[9:]}",
    "after half an escape": lambda key: f"\\u00{key} %{key} &#{key}",
}


def bare(text):
    """A text with every escape undone and nothing but letters and digits; written for this test."""
    for _ in range(4):
        text = re.sub(r"\\+u00(..)|\\+x\{?(..)\}?|%(?:25)*(?:u00)?(..)", _char, text)
        text = re.sub(r"\\+([0-7]{3})", lambda m: chr(int(m[1], 8)), text)
        text = re.sub(r"&#(\d+);", lambda m: chr(int(m[1])), text)
    text = "".join(chr(ord(c) - 0xFEE0) if 0xFF01 <= ord(c) <= 0xFF5E else c for c in text)
    return re.sub(r"\\+n|[^a-z0-9]", "", text.lower())


def _char(found):
    code = found[1] or found[2] or found[3]
    try:
        return chr(int(code, 16))
    except ValueError:
        return found[0]


def leaks(text):
    """Which forms of the key a text holds."""
    found = []
    plain = re.sub(r"[^a-z0-9]", "", text.lower())
    for form in (KEY, KEY[::-1]):
        own = re.sub(r"[^a-z0-9]", "", form.lower())
        codes = [
            base64.b64encode(b"x" * n + form.encode()).decode()[4 if n else 0 : -4]
            for n in range(3)
        ]
        wanted = [own, *codes, *(c[::-1] for c in codes), form.encode().hex()]
        found += [w for w in wanted if w.lower() in plain or w.lower() in bare(text)]
    return found
