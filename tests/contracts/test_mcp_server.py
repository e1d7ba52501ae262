"""`kernelwright mcp` driven by the reference client: tools, resources, progress, cancelling, bad input."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import anyio
import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters

from agent.llm.skills import skills
from sandbox.types import KernelMetrics, Verdict
from webapp.mcp.words import WORDS

ROOT = Path(__file__).resolve().parents[2]
SAXPY = (ROOT / "examples/c/saxpy.c").read_text()
RIGHT = (ROOT / "tests/fixtures/kernels/right/saxpy_plain.cu").read_text()
WRONG = (ROOT / "tests/fixtures/kernels/wrong/saxpy_guard_off_by_one.cu").read_text()
ARGV = ["-m", "webapp.cli.main", "mcp"]
STDIO = StdioServerParameters(
    command=sys.executable, args=ARGV, cwd=str(ROOT), env={**os.environ, "PYTHONPATH": str(ROOT)}
)
MODES = ["auto", "legacy"]


@pytest.mark.usefixtures("jail")
async def test_a_kernel_is_really_judged_with_progress() -> None:
    steps: list[str] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        steps.append(message or "")

    async with Client(STDIO) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert tools == {"translate", "evaluate", "profile", "explain"}
        arguments = {"source": SAXPY, "filename": "saxpy.c", "candidate": RIGHT}
        judged = await client.call_tool("evaluate", arguments, progress_callback=progress)
        assert not judged.is_error
        evaluation = content(judged)
        assert (evaluation["verdict"], evaluation["backend"]) == ("passed", "emulator")
        assert evaluation["metrics"]["structural_score"] > 50
        assert steps[0] == "understand saxpy.c"
        assert len(steps) > 3
        measured = content(await client.call_tool("profile", arguments))
        assert any(line["global_load_requests"] for line in measured["metrics"]["kernels"][0]["lines"])
        wrong = content(await client.call_tool("evaluate", arguments | {"candidate": WRONG}))
        assert (wrong["verdict"], wrong["fault"]) == ("runtime_error", "candidate")


@pytest.mark.usefixtures("jail")
async def test_a_task_is_translated(tmp_path: Path) -> None:
    async with Client(STDIO) as client:
        arguments = {"source": SAXPY, "filename": "saxpy.c", "turns": 1}
        result = content(await client.call_tool("translate", arguments))
        assert (result["verdict"], result["best_turn"], len(result["turns"])) == ("passed", 1, 1)
        assert "__global__" in result["source"]


async def test_words_and_skills_are_there_and_bad_input_is_said() -> None:
    async with Client(STDIO) as client:
        said = await client.call_tool("explain", {"word": "Wrong result"})
        assert "first_mismatch" in said.content[0].text  # type: ignore[union-attr]
        unknown = await client.call_tool("explain", {"word": "flux"})
        assert unknown.is_error
        resources = {str(it.uri) for it in (await client.list_resources()).resources}
        assert {f"skill://{name}" for name in skills()} | {"doc://metrics"} <= resources
        page = await client.read_resource("skill://tiling")
        assert "shared" in page.contents[0].text  # type: ignore[union-attr]
        for change, words in (
            ({"source": "int x;"}, "no function"),
            ({"filename": "../x.c"}, "filename"),
            ({"target": "sm_1"}, "sm_1"),
            ({"candidate": "x" * 1_000_001}, "candidate"),
            ({"source": ""}, "no source"),
        ):
            arguments = {"source": SAXPY, "filename": "saxpy.c", "candidate": RIGHT}
            refused = await refusal(client, arguments | change)
            assert words in refused
            assert "Traceback" not in refused


@pytest.mark.usefixtures("jail")
@pytest.mark.parametrize("mode", MODES)
async def test_what_is_cancelled_stops_and_the_server_goes_on(mode: str) -> None:
    """Two long judgements would keep both places; after they are cancelled the next one is soon there."""
    endless = RIGHT.replace("y[i] =", "for (long k = 0; k < 1000000000000L; k++) y[i] +=")
    assert endless != RIGHT
    arguments = {"source": SAXPY, "filename": "saxpy.c", "candidate": endless}
    async with Client(STDIO, mode=mode) as client:
        for _ in range(2):
            started = anyio.Event()

            async def progress(
                done: float, total: float | None, message: str | None, started: anyio.Event = started
            ) -> None:
                if message and not message.startswith("understand"):
                    started.set()

            async with anyio.create_task_group() as group:
                group.start_soon(_call, client, arguments, progress)
                with anyio.fail_after(30):
                    await started.wait()
                group.cancel_scope.cancel()
        with anyio.fail_after(60):
            judged = content(await client.call_tool("evaluate", arguments | {"candidate": RIGHT}))
        assert judged["verdict"] == "passed"


async def _call(client: Client, arguments: dict[str, Any], progress: Any) -> None:
    await client.call_tool("evaluate", arguments, progress_callback=progress)


@pytest.fixture
def address() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    argv = [sys.executable, *ARGV, "--http", "--port", str(port)]
    around = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(argv, cwd=ROOT, env=around, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                assert process.poll() is None
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
        process.terminate()
        process.wait(20)


@pytest.mark.usefixtures("jail")
async def test_the_same_over_http_and_only_from_this_machine(address: str) -> None:
    async with Client(address) as client:
        arguments = {"source": SAXPY, "filename": "saxpy.c", "candidate": RIGHT}
        assert content(await client.call_tool("evaluate", arguments))["verdict"] == "passed"
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        accept = {"Accept": "application/json, text/event-stream"}
        refused = httpx2.post(address, json=body, headers=accept | headers)
        assert refused.status_code in (403, 421)


def test_every_verdict_family_and_number_is_explained() -> None:
    weights = {"coalescing", "shared_memory", "occupancy", "intensity", "divergence", "synchronisation"}
    whole = {"name", "launches", "grid", "block", "blocks", "counted_blocks", "lines"}
    wanted = {*get_args(Verdict), *weights, "balance", "overheads", *KernelMetrics.model_fields} - whole
    assert wanted <= set(WORDS)


def test_it_starts_without_the_web_application() -> None:
    script = "import sys, webapp.cli.mcp_server; print(any(it.startswith('django') for it in sys.modules))"
    finished = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert finished.stdout == "False\n"


def content(result: Any) -> Any:
    assert not result.is_error, result.content
    found = result.structured_content
    assert isinstance(found, dict)
    return found.get("result", found) if set(found) == {"result"} else found


async def refusal(client: Client, arguments: dict[str, Any]) -> str:
    """What is said where a call is refused, by its result or by the protocol."""
    try:
        result = await client.call_tool("evaluate", arguments)
    except MCPError as error:
        return str(error)
    assert result.is_error
    return str(result.content[0].text)  # type: ignore[union-attr]
