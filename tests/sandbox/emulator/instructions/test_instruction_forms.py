"""Every form of the tables, run by the emulator in both modes and compared with its definition."""

from __future__ import annotations

import functools
import importlib
import re
import subprocess
from pathlib import Path

import instruction_modules
import numpy as np
import pytest
from emulated import Machine, Out
from instruction_forms import Form, Table

from sandbox import toolchain
from sandbox.emulator.client import Mode

NAMES = sorted(path.stem for path in Path(__file__).parent.glob("forms_*.py"))
TABLES: dict[str, Table] = {name: importlib.import_module(name).TABLE for name in NAMES}
CASES = [
    pytest.param(table, form, id=f"{TABLES[table].name}: {form.text} ({' '.join(form.sources)})")
    for table, found in TABLES.items()
    for form in found.forms
]
Ran = dict[str, tuple[instruction_modules.Entry, list[bytes]]]


@functools.cache
def module_of(table: str) -> tuple[str, list[instruction_modules.Entry]]:
    entries = instruction_modules.entries(TABLES[table].forms)
    return instruction_modules.header(TABLES[table].target) + "\n".join(
        entry.ptx() for entry in entries
    ), entries


@functools.cache
def outcome(table: str) -> Ran | Exception:
    """What a table gave, also when that is a failure: it is not compiled again for each of its forms."""
    try:
        return ran(table, "checked")
    except Exception as error:
        return error


def ran(table: str, mode: Mode) -> Ran:
    """Form -> the entry it stands in and what each round put out. One module and one process a table."""
    text, entries = module_of(table)
    machine = Machine(text, mode=mode)
    prepared = [
        machine.prepare(
            entry.name,
            1,
            instruction_modules.THREADS,
            Out(entry.rows * instruction_modules.THREADS * entry.size, "uint8"),
            *entry.arguments(number),
            count=False,
        )
        for entry in entries
        for number in range(instruction_modules.ROUNDS)
    ]
    runs = machine.run_all(prepared, seconds=60)
    assert len(runs) == len(prepared), runs[-1].result
    assert runs[-1].result.status == "ok", runs[-1].result
    outputs = [np.ascontiguousarray(run.arrays["a0"]).tobytes() for run in runs]
    rounds = instruction_modules.ROUNDS
    return {
        form.key: (entry, outputs[index * rounds : (index + 1) * rounds])
        for index, entry in enumerate(entries)
        for form in entry.forms
    }


@pytest.mark.parametrize(("table", "form"), CASES)
def test_form_does_what_it_is_defined_to(jail: None, table: str, form: Form) -> None:
    found = outcome(table)
    if isinstance(found, Exception):
        raise found
    entry, outputs = found[form.key]
    complaints = entry.wrong(form, outputs)
    assert not complaints, "\n".join([f"{len(complaints)} differ", *complaints[:6]])


@pytest.mark.parametrize("table", NAMES)
def test_without_checks_it_is_the_same(jail: None, table: str) -> None:
    """Compared with the definition only where the two modes differ, as NaN may."""
    checked = outcome(table)
    if isinstance(checked, Exception):
        raise checked
    plain = ran(table, "plain")
    different = [form for form in TABLES[table].forms if plain[form.key][1] != checked[form.key][1]]
    complaints = [
        f"{form.text}: {complaint}"
        for form in different
        for complaint in plain[form.key][0].wrong(form, plain[form.key][1])
    ]
    assert not complaints, "\n".join([f"{len(complaints)} differ", *complaints[:6]])


def test_no_two_forms_are_the_same() -> None:
    for table in TABLES.values():
        keys = [form.key for form in table.forms]
        assert len(keys) == len(set(keys)), [form.text for form in table.forms if keys.count(form.key) > 1]


@pytest.mark.parametrize("table", NAMES)
def test_forms_are_ptx(nvcc: None, table: str, tmp_path: Path) -> None:
    """NVIDIA's assembler takes every module as it is written for the emulator."""
    (tmp_path / "forms.ptx").write_text(module_of(table)[0])
    ptxas = toolchain.find_toolkit().nvcc.with_name("ptxas")
    finished = subprocess.run(
        [ptxas, "-O0", f"-arch={TABLES[table].target}", "forms.ptx", "-o", "forms.cubin"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    lines = module_of(table)[0].split("\n")
    refused = re.findall(r"line (\d+); error\s*: (.*)", finished.stderr)
    found = {re.sub(r"%\w+|-?\d{3,}", "_", lines[int(line) - 1]): message for line, message in refused}
    assert finished.returncode == 0, "\n".join(f"{line}  {message}" for line, message in found.items())


def test_a_wrong_bit_is_noticed(jail: None) -> None:
    """In any output of any occurrence: what compares is itself tried."""
    table = TABLES["forms_integer"]
    found = outcome("forms_integer")
    assert not isinstance(found, Exception), found
    for form in table.forms[::17]:
        entry, outputs = found[form.key]
        for row, occurrence in enumerate(entry.occurrences):
            if occurrence.form is form:
                first, *others = outputs
                place = row * len(form.results) * instruction_modules.THREADS * entry.size
                spoilt = first[:place] + bytes([first[place] ^ 1]) + first[place + 1 :]
                assert len(entry.wrong(form, [spoilt, *others])) == 1, (form.text, occurrence.kinds)
