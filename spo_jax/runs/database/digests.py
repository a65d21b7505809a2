"""Whether a run's database is as it was written: it keeps a digest of the rows of each round.

So code that reads a run can rely on what it finds. This notices damage, and edits by hand; who
edits the digests too is not noticed.
"""

import hashlib
import sqlite3
from collections import defaultdict
from collections.abc import Collection
from functools import partial
from typing import Any

from spo_jax.errors import InputError
from spo_jax.runs.database.tables import CONFIG, DIGESTS, TABLES, TIMINGS, Digest
from spo_jax.runs.folders import REMEDY


def seal(db: sqlite3.Connection, rounds: Collection[int] | None = None) -> None:
    """Keep the digests of rounds whose rows have changed, in the transaction that changed them.

    By default of all rounds, in a database that has none yet.
    """
    if rounds is None:
        db.execute(DIGESTS.ddl)
    else:
        db.executemany("DELETE FROM digests WHERE round = ?", [(k,) for k in rounds])
    DIGESTS.insert(db, (Digest(k, text) for k, text in _digests(db, rounds).items()))


def require_intact(db: sqlite3.Connection) -> None:
    """Raises InputError, which names the first round that differs, unless all is as it was written.

    Of a database without digests, of an earlier version, SQLite's own check is all there is, and
    that no round is missing.
    """
    for (result,) in db.execute("PRAGMA integrity_check(1)"):
        if result != "ok":
            raise InputError(f"SQLite says: {result:.80}; {REMEDY}")
    found = set(db.execute("SELECT type, name FROM sqlite_schema"))
    for kind, name in sorted(found):
        if kind in ("trigger", "view"):  # it would change what is written or read
            raise InputError(f"there is a {kind} {name:.40}, which no run has: {REMEDY}")
    for table in (*TABLES, TIMINGS):
        if not table.later and ("table", table.name) not in found:
            raise InputError(f"there is no table {table.name}: {REMEDY}")
    whole = range(db.execute("SELECT COUNT(*) FROM rounds").fetchone()[0] + 1)
    now = _digests(db)
    kept = {k: now.get(k) for k in whole}
    if DIGESTS.exists(db):
        kept = dict(db.execute("SELECT round, digest FROM digests"))
    timed = {k for (k,) in db.execute("SELECT DISTINCT round FROM timings")}
    beyond = {*now, *kept, *timed}.difference(whole)
    for k in (*whole, *sorted(beyond, key=ascii)):
        if k not in now or now[k] != kept.get(k):
            what = f"round {k!r:.20}" if k else "the record of the settings"
            raise InputError(f"{what} is not what was written: {REMEDY}")


def _digests(db: sqlite3.Connection, rounds: Collection[int] | None = None) -> dict[Any, str]:
    """A digest of all rows of each round, types included; of round 0, of settings and columns.

    rounds: those that are wanted, by default all that there are.
    """
    hashes: dict[Any, Any] = defaultdict(partial(hashlib.blake2b, digest_size=16))

    def add(k: Any, what: Any) -> None:
        # Not `repr`, which escapes other characters with each version of Unicode.
        hashes[k].update(ascii(what).encode())

    known = [table for table in TABLES if table.exists(db)]
    for table in known:
        number = "0" if table is CONFIG else "round"
        some = "1" if rounds is None else f"{number} IN ({', '.join(map(str, rounds))})"
        rows = defaultdict(list)
        for k, *row in db.execute(
            f"SELECT {number}, {', '.join(table.columns)} FROM {table.name} WHERE {some}"
            f" ORDER BY {', '.join(table.key)}"
        ):
            rows[k].append(row)
        for k in rows:
            add(k, (table.name, rows[k]))
    if 0 in hashes:
        add(0, [(t.name, *db.execute(f"PRAGMA table_info({t.name})")) for t in known])
    return {k: each.hexdigest() for k, each in hashes.items()}
