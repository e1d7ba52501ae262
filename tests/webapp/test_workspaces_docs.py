"""docs/workspaces.md has the table of roles as it is in the code.

python -m tests.webapp.test_workspaces_docs    writes it
"""

from __future__ import annotations

import re
from pathlib import Path

from webapp.workspaces.roles import ACTIONS, Role, Rule

PAGE = Path(__file__).resolve().parents[2] / "docs" / "workspaces.md"
TABLE = re.compile(r"(<!-- roles: .*? -->\n).*?(<!-- /roles -->)", re.DOTALL)


def table() -> str:
    lines = [
        f"| action | {' | '.join(role.value for role in Role)} | token's scope |",
        "| --- |" + " --- |" * (len(Role) + 1),
    ]
    for name, rule in ACTIONS.items():
        if not rule.staff:
            cells = [_cell(rule, role) for role in Role]
            scope = rule.scope.value if rule.scope else "only by browser"
            lines.append(f"| `{name}` | {' | '.join(cells)} | {scope} |")
    return "\n".join(lines) + "\n"


def _cell(rule: Rule, role: Role) -> str:
    if rule.role is None or role.rank >= rule.role.rank:
        return "yes"
    return "own" if rule.own is not None and role.rank >= rule.own.rank else ""


def written(text: str) -> str:
    return TABLE.sub(lambda found: found[1] + table() + found[2], text)


def test_the_page_has_the_table_of_the_code() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert TABLE.search(text)
    assert written(text) == text, "run python -m tests.webapp.test_workspaces_docs"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
