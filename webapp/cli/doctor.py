"""What this machine can do: nvcc, jail, GPU, torch, database, broker; and how to get what is missing.

Example: kernelwright doctor
"""

from __future__ import annotations

import argparse
from dataclasses import asdict

from sandbox.doctor import examine
from webapp.cli.output import GOOD, NOT_GOOD, dump
from webapp.common.services_check import examine_services


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def main(options: argparse.Namespace) -> int:
    findings = [*examine(), *examine_services()]
    if options.json:
        dump([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            state = "ok" if finding.ok else "missing" if finding.needed else "not here"
            print(f"{state:<9} {finding.name:<16} {finding.detail}")
            if not finding.ok and finding.how:
                print(f"{'':<26} {finding.how}")
    return GOOD if all(finding.ok for finding in findings if finding.needed) else NOT_GOOD
