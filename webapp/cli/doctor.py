"""What this machine can do: nvcc, jail, GPU, torch, database, broker; and how to get what is missing.

Example: kernelwright doctor
"""

from __future__ import annotations

import argparse

from sandbox.doctor import examine
from webapp.cli.output import GOOD, NOT_GOOD, dump


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def main(options: argparse.Namespace) -> int:
    findings = examine()
    if options.json:
        dump([{"name": f.name, "ok": f.ok, "detail": f.detail, "how": f.how} for f in findings])
    else:
        for finding in findings:
            print(f"{'ok     ' if finding.ok else 'missing'} {finding.name:<16} {finding.detail}")
            if not finding.ok and finding.how:
                print(f"        {'':<16} {finding.how}")
    return GOOD if all(finding.ok for finding in findings if finding.needed) else NOT_GOOD
