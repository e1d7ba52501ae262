"""The one command, `kernelwright` (short: `kw`), the same for people, tests and GPU nodes.

Exit codes: 0 done and good, 1 done and not good, 2 bad input (one clear line, what to do), 3 Kernelwright's
own fault, 130 stopped by Ctrl-C. Results go to stdout, logs and progress to stderr.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version

from sandbox.errors import Cancelled, JailUnavailable, TaskProblem, ToolchainMissing
from webapp.cli.output import BAD_INPUT, OWN_FAULT, STOPPED, ServerFault, complain, say

#: name -> (module, one line). Imported when chosen: only `serve` and `gpu-worker` load Django.
COMMANDS = {
    "translate": ("webapp.cli.translate", "turn C or PyTorch into verified CUDA over several turns"),
    "evaluate": ("webapp.cli.evaluate", "judge a given .cu for the task in FILE"),
    "exec": ("webapp.cli.execute", "build and run a whole CUDA program without a GPU, checked"),
    "nvcc": ("webapp.cli.nvcc", "nvcc for Makefiles, so that exec can run what they make"),
    "profile": ("webapp.cli.profile", "structural metrics of a candidate, by kernel and by line"),
    "check": ("webapp.cli.check", "judge the kernels of a project, for CI and pre-commit"),
    "mcp": ("webapp.cli.mcp_server", "the judge and the translator for other agents, as an MCP server"),
    "replay": ("webapp.cli.replay", "step through a recorded run, or judge its candidates again"),
    "doctor": ("webapp.cli.doctor", "what this machine can do, and how to get what is missing"),
    "serve": ("webapp.cli.serve", "the web application, all in one process"),
    "gpu-worker": ("webapp.cli.gpu_worker", "serve one card of this machine to a server elsewhere"),
    "login": ("webapp.cli.login", "store a token for a server"),
    "submit": ("webapp.cli.submit", "have a server translate, or judge a candidate"),
    "watch": ("webapp.cli.watch", "follow a run on a server"),
    "show": ("webapp.cli.show", "a run or an evaluation on a server, or the newest"),
    "diff": ("webapp.cli.diff", "what changed between two turns of a run on a server"),
    "download": ("webapp.cli.download", "a candidate from a server"),
    "train": ("webapp.cli.train", "make data to learn from, and look at it"),
    "bench": ("webapp.cli.bench", "the benchmarks that docs/measurements quotes"),
}

#: What not every installation has, and the extra that brings it.
EXTRAS = {"httpx2": "llm", "mcp": "mcp"}


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    rest: list[str] = []
    parser = argparse.ArgumentParser(prog="kernelwright", description=__doc__)
    parser.add_argument("--version", action="version", version=f"kernelwright {version('kernelwright')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    chosen = next((a for a in arguments if not a.startswith("-")), None)
    for name, (module_name, summary) in COMMANDS.items():
        sub = commands.add_parser(name, help=summary, formatter_class=argparse.RawDescriptionHelpFormatter)
        if name == chosen:
            try:
                module = import_module(module_name)
            except ModuleNotFoundError as missing:
                if missing.name not in EXTRAS:
                    raise
                say(f"kernelwright: {name} needs more: pip install 'kernelwright[{EXTRAS[missing.name]}]'")
                return BAD_INPUT
            sub.description = module.__doc__
            if hasattr(module, "prepare"):
                arguments, rest = module.prepare(arguments)
            module.add_arguments(sub)
            sub.set_defaults(run=module.main, rest=rest)
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except TaskProblem as error:
        return complain(error.problem, getattr(options, "json", False))
    except (JailUnavailable, ToolchainMissing) as error:
        print(f"kernelwright: {error}", file=sys.stderr)
        return BAD_INPUT
    except ServerFault as error:
        say(f"kernelwright: the server's own fault: {error}")
        return OWN_FAULT
    except (KeyboardInterrupt, Cancelled):
        print("kernelwright: stopped", file=sys.stderr)
        return STOPPED
    except BrokenPipeError:
        # Who read stdout went away, as `head` does. Python flushes once more at its end: let it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        print(f"kernelwright: own fault: {type(error).__name__}: {error}", file=sys.stderr)
        return OWN_FAULT


if __name__ == "__main__":
    sys.exit(main())
