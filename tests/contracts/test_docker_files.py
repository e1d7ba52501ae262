"""What can be said of the images without an engine: what they copy is there, what they run is a command of
ours that parses, what they are told is documented. Building and running them is another matter
(docs/deployment.md says what was not done)."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from webapp.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
#: Not ours: PostgreSQL's image, compose's own substitutions.
OTHERS = {
    *("POSTGRES_PASSWORD", "POSTGRES_USER", "POSTGRES_DB"),
    *("KERNELWRIGHT_PORT", "GPU_CARD", "VLLM_CARD", "VLLM_MODEL"),
}
INSTRUCTIONS = {
    *("FROM", "RUN", "COPY", "ENV", "WORKDIR", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "CMD", "ARG"),
}


def instructions(path: Path) -> list[tuple[str, str]]:
    """Of a Dockerfile, continued lines joined."""
    text = re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    found = [line.split(maxsplit=1) for line in text.splitlines() if line.strip()]
    return [(word, rest) for word, rest in found]


def stages(path: Path) -> dict[str, list[tuple[str, str]]]:
    """By name, in order."""
    found: dict[str, list[tuple[str, str]]] = {}
    current: list[tuple[str, str]] = []
    for word, rest in instructions(path):
        if word == "FROM":
            current = found[rest.rpartition(" AS ")[2]] = []
        current.append((word, rest))
    return found


FILES = sorted(path.name for path in DOCKER.glob("*Dockerfile"))


@pytest.mark.parametrize("name", FILES)
def test_every_stage_stands_on_a_pinned_base_and_copies_what_is_there(name: str) -> None:
    known = stages(DOCKER / name)
    seen: set[str] = set()
    for stage, lines in known.items():
        for word, rest in lines:
            assert word in INSTRUCTIONS, word
            if word == "FROM":
                base = rest.partition(" AS ")[0]
                assert base in seen or re.search(r":v?\d+\.\d+[\w.-]*$", base), base
            if word == "COPY":
                source = re.fullmatch(r"--from=(\S+) (.*)", rest)
                if source:
                    assert source[1] in seen
                else:
                    for path in rest.split()[:-1]:
                        assert (ROOT / path).exists(), path
                        assert f"!{path.split('/')[0]}" in (ROOT / ".dockerignore").read_text().split()
        seen.add(stage)


@pytest.mark.parametrize("stage", ["web", "worker", "gpu-worker"])
def test_what_an_image_runs_is_a_command_of_ours(stage: str) -> None:
    lines = dict(stages(DOCKER / "Dockerfile")[stage])
    assert lines["USER"] == "kernelwright"
    check = json.loads(lines["HEALTHCHECK"].partition("CMD ")[2])
    for command in (json.loads(lines["CMD"]), check):
        if command[0] == "kernelwright":
            said = io.StringIO()
            # With --help, everything before it is parsed and nothing is done.
            with contextlib.redirect_stdout(said), pytest.raises(SystemExit) as ended:
                main([*command[1:], "--help"])
            assert ended.value.code == 0
            for option in command[2:]:
                assert not option.startswith("--") or option in said.getvalue()
        elif command[0] == "celery":
            assert command == shlex.split("celery -A webapp worker")
        else:
            assert command[:2] == ["python", "-c"]
            compile(command[2], "healthcheck", "exec")


def test_the_compose_file_names_stages_services_and_volumes_that_are_there() -> None:
    services = COMPOSE["services"]
    assert set(services) == {"postgres", "redis", "web", "worker", "gpu-worker", "vllm"}
    mounted = set()
    for name, service in services.items():
        assert ("image" in service) != ("build" in service)
        if "build" in service:
            path = DOCKER / service["build"]["context"] / service["build"]["dockerfile"]
            assert service["build"].get("target", "") in {"", *stages(path)}
            assert any(word == "HEALTHCHECK" for word, _ in instructions(path))
        else:
            assert re.search(r":\d+\.\d+", service["image"])
            assert "healthcheck" in service
        assert set(service.get("depends_on", {})) <= set(services)
        mounted |= {volume.partition(":")[0] for volume in service.get("volumes", [])}
        reserved = service.get("deploy", {}).get("resources", {}).get("reservations", {}).get("devices", [])
        assert bool(reserved) == (name in ("gpu-worker", "vllm"))
        assert all(device["capabilities"] == ["gpu"] for device in reserved)
    assert mounted == set(COMPOSE["volumes"])


def test_what_is_set_is_documented_and_no_secret_is_in_the_example() -> None:
    documented = set(re.findall(r"`(KERNELWRIGHT_\w+)`", (ROOT / "docs/deployment.md").read_text()))
    text = (DOCKER / "compose.yaml").read_text()
    substituted = set(re.findall(r"\$\{(\w+)", text))
    told = {name for service in COMPOSE["services"].values() for name in service.get("environment", {})}
    example = dict(
        line.split("=", 1)
        for line in (DOCKER / ".env.example").read_text().splitlines()
        if line and not line.startswith("#")
    )
    assert told | substituted <= documented | OTHERS
    assert set(example) == substituted
    required = set(re.findall(r"\$\{(\w+):\?", text))
    assert {name for name, value in example.items() if not value} == required | {"KERNELWRIGHT_ORIGINS"}


def test_workers_that_judge_can_make_their_jail() -> None:
    """bubblewrap's namespaces and its /proc: three things of Docker's stand in the way."""
    for name in ("worker", "gpu-worker"):
        service = COMPOSE["services"][name]
        wanted = {f"{what}=unconfined" for what in ("seccomp", "apparmor", "systempaths")}
        assert wanted <= set(service["security_opt"])
        assert service["cap_drop"] == ["ALL"]
