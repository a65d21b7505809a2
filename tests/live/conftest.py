"""Shows what was measured."""

from typing import Any

from tests.live.serving import MEASURED


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if MEASURED:
        terminalreporter.section("measured")
        for line in MEASURED:
            terminalreporter.write_line(line)
