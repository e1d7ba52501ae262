#!/usr/bin/env python3
"""A small OpenAI-style server for one model, with batching: for measurements where vLLM cannot be had.

    scripts/serve_transformers.py MODEL [--port N] [--batch N] [--device cuda] [--dtype bfloat16]

MODEL is a folder with safetensors, or a .gguf file (which needs gguf and accelerate, too). Needs torch and
transformers 5, no internet.
`POST /v1/chat/completions` (streamed or whole, tools by the model's own template) and `GET /v1/models`, on
loopback. Requests that wait are answered together: prompts padded on the left, one step for all of them at
a time, whoever is done leaves. New ones join when a batch is through, or when enough of it is. No part of
the product, and open to anyone on this machine.
"""

from __future__ import annotations

import argparse
import json
import queue
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

#: While at most this share of a batch is still being written and others wait, those join: all go on together.
_REFILL = 0.5
#: How long the first of a batch waits for company.
_GATHER_SECONDS = 0.05


@dataclass(eq=False)
class Sequence:
    """One answer in the making. `pieces` gets text, and None at the end."""

    prompt: list[int]
    most: int
    temperature: float
    top_p: float
    seed: int | None
    written: list[int] = field(default_factory=list)
    shown: str = ""
    finish: str = ""
    gone: bool = False  # nobody listens any more
    pieces: queue.SimpleQueue[str | None] = field(default_factory=queue.SimpleQueue)
    random: torch.Generator | None = None


class Engine:
    """The model, driven by one thread."""

    def __init__(self, options: argparse.Namespace) -> None:
        path = Path(options.model)
        where: dict[str, Any] = {"dtype": getattr(torch, options.dtype)}
        folder = str(path)
        if path.suffix == ".gguf":
            folder, where["gguf_file"] = str(path.parent), path.name
            where["quantization_config"] = GgufConfig(dequantize=True)
        named = {"gguf_file": path.name} if path.suffix == ".gguf" else {}
        self.tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left", **named)
        self.model = AutoModelForCausalLM.from_pretrained(folder, **where).to(options.device).eval()
        self.device, self.batch = options.device, options.batch
        ends = self.model.generation_config.eos_token_id
        self.ends = {*(ends if isinstance(ends, list) else [ends]), self.tokenizer.eos_token_id} - {None}
        self.waiting: queue.Queue[Sequence] = queue.Queue()
        self.tokens, self.seconds = 0, 0.0  # written, and the time it took

    def context(self) -> int:
        return int(getattr(self.model.config, "max_position_embeddings", 4096))

    def prompt(self, body: dict[str, Any]) -> list[int]:
        tools = body.get("tools") or None
        ids = self.tokenizer.apply_chat_template(
            [_message(m) for m in body["messages"]],
            tools=tools,
            add_generation_prompt=True,
            return_dict=False,
        )
        return list(ids)

    def serve(self) -> None:
        """Without end: batch after batch."""
        carried: list[Sequence] = []
        while True:
            batch = carried or [self.waiting.get()]
            time.sleep(0 if carried else _GATHER_SECONDS)
            while len(batch) < self.batch and not self.waiting.empty():
                batch.append(self.waiting.get())
            try:
                carried = self._write(batch)
            except Exception as error:  # one bad batch must not end the server
                print(f"a batch failed: {type(error).__name__}: {error}", flush=True)
                if self.device != "cpu":
                    torch.cuda.empty_cache()
                for sequence in batch:
                    sequence.finish = sequence.finish or "error"
                    sequence.pieces.put(None)
                carried = []

    @torch.inference_mode()
    def _write(self, batch: list[Sequence]) -> list[Sequence]:
        """Writes until all are done, or few enough are left that others should join; returns those."""
        began, before = time.monotonic(), self.tokens
        longest = max(len(s.prompt) + len(s.written) for s in batch)
        pad = self.tokenizer.pad_token_id if self.tokenizer.pad_token_id is not None else 0
        rows = [[pad] * (longest - len(s.prompt) - len(s.written)) + s.prompt + s.written for s in batch]
        ids = torch.tensor(rows, device=self.device)
        mask = torch.tensor(
            [
                [0] * (longest - len(s.prompt) - len(s.written)) + [1] * (len(s.prompt) + len(s.written))
                for s in batch
            ],
            device=self.device,
        )
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        cache, alive, size = None, list(batch), len(batch)
        while alive:
            out = self.model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )
            cache = out.past_key_values
            chosen = self._choose(out.logits[:, -1].float(), alive)
            kept = [
                row for row, (s, token) in enumerate(zip(alive, chosen, strict=True)) if self._add(s, token)
            ]
            if len(kept) < len(alive):
                alive = [alive[row] for row in kept]
                if not alive or (len(alive) <= _REFILL * size and not self.waiting.empty()):
                    break
                keep = torch.tensor(kept, device=self.device)
                cache.batch_select_indices(keep)
                mask, positions = mask[keep], positions[keep]
                chosen = [chosen[row] for row in kept]
            ids = torch.tensor(chosen, device=self.device)[:, None]
            mask = torch.cat([mask, mask.new_ones((len(alive), 1))], dim=1)
            positions = positions[:, -1:] + 1
        self.seconds += time.monotonic() - began
        rate = (self.tokens - before) / max(time.monotonic() - began, 1e-9)
        print(f"{size} together, {self.tokens - before} tokens, {rate:.1f} tokens/s", flush=True)
        return alive

    def _choose(self, logits: torch.Tensor, alive: list[Sequence]) -> list[int]:
        """One token for each, by its own temperature and nucleus."""
        greedy = logits.argmax(-1)
        if all(s.temperature <= 0 for s in alive):
            return [int(token) for token in greedy.tolist()]
        warmth = torch.tensor([max(s.temperature, 1e-4) for s in alive], device=logits.device)[:, None]
        nucleus = torch.tensor([s.top_p for s in alive], device=logits.device)[:, None]
        sorted_, order = (logits / warmth).softmax(-1).sort(-1, descending=True)
        sorted_ = sorted_.masked_fill(sorted_.cumsum(-1) - sorted_ >= nucleus, 0.0)
        draws = torch.stack([torch.rand((), generator=s.random) for s in alive]).to(logits.device)
        totals = sorted_.cumsum(-1)
        place = torch.searchsorted(totals, (draws * totals[:, -1])[:, None]).clamp(max=logits.shape[-1] - 1)
        sampled = order.gather(-1, place)[:, 0]
        cold = torch.tensor([s.temperature <= 0 for s in alive], device=logits.device)
        return [int(token) for token in torch.where(cold, greedy, sampled).tolist()]

    def _add(self, sequence: Sequence, token: int) -> bool:
        """Whether the answer goes on."""
        self.tokens += 1
        if sequence.gone:
            sequence.finish = "cut"
        elif token in self.ends:
            sequence.finish = "stop"
        else:
            sequence.written.append(token)
            if len(sequence.written) >= sequence.most:
                sequence.finish = "length"
        self._show(sequence)
        if sequence.finish:
            sequence.pieces.put(None)
        return not sequence.finish

    def _show(self, sequence: Sequence) -> None:
        """What can be told: a character that is still in pieces waits."""
        if len(sequence.written) % 8 and not sequence.finish:
            return
        text = self.tokenizer.decode(sequence.written, skip_special_tokens=True)
        if text.endswith("\ufffd") and not sequence.finish:
            return
        if len(text) > len(sequence.shown):
            sequence.pieces.put(text[len(sequence.shown) :])
            sequence.shown = text


def _message(message: dict[str, Any]) -> dict[str, Any]:
    """As templates want it: arguments of calls as objects."""
    calls = []
    for call in message.get("tool_calls") or ():
        function = dict(call.get("function") or {})
        try:
            function["arguments"] = json.loads(function.get("arguments") or "{}")
        except ValueError:
            function["arguments"] = {}
        calls.append({"type": "function", "function": function})
    said = {"role": message["role"], "content": message.get("content") or ""}
    return said | ({"tool_calls": calls} if calls else {})


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    engine: Engine
    name: str

    def do_GET(self) -> None:
        if self.path.rstrip("/") == "/v1/models":
            self._whole(200, {"object": "list", "data": [{"id": self.name, "object": "model"}]})
        else:
            self._whole(404, {"error": {"message": "there are /v1/models and /v1/chat/completions"}})

    def do_POST(self) -> None:
        try:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            sequence = self._sequence(body)
        except Exception as error:  # whatever a request holds, the answer says what is wrong
            self._whole(400, {"error": {"message": f"{type(error).__name__}: {error}"}})
            return
        self.engine.waiting.put(sequence)
        try:
            self._stream(sequence, body) if body.get("stream") else self._at_once(sequence)
        except (BrokenPipeError, ConnectionResetError):
            sequence.gone = True
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _sequence(self, body: dict[str, Any]) -> Sequence:
        prompt = self.engine.prompt(body)
        asked = int(body.get("max_tokens") or body.get("max_completion_tokens") or 512)
        room = self.engine.context() - len(prompt)
        if room < 1:
            raise ValueError(f"the prompt has {len(prompt)} tokens, the context {self.engine.context()}")
        temperature, top_p = body.get("temperature"), body.get("top_p")
        seed = body.get("seed")
        random = torch.Generator()
        random.manual_seed(int(seed)) if seed is not None else random.seed()
        return Sequence(
            prompt,
            min(asked, room),
            0.7 if temperature is None else float(temperature),
            1.0 if top_p is None else float(top_p),
            seed,
            random=random,
        )

    def _stream(self, sequence: Sequence, body: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in _pieces(sequence):
            self._event({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
        if sequence.finish == "error":
            self._event({"error": {"message": "the batch failed: see the server's output"}})
        else:
            self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": sequence.finish}]})
        if (body.get("stream_options") or {}).get("include_usage"):
            self._event({"choices": [], "usage": _usage(sequence)})
        self._chunk("data: [DONE]\n\n")
        self._chunk("")

    def _at_once(self, sequence: Sequence) -> None:
        text = "".join(_pieces(sequence))
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": sequence.finish,
        }
        self._whole(
            500 if sequence.finish == "error" else 200,
            {"id": uuid.uuid4().hex, "model": self.name, "choices": [choice], "usage": _usage(sequence)},
        )

    def _event(self, data: dict[str, Any]) -> None:
        self._chunk(f"data: {json.dumps({'model': self.name, **data})}\n\n")

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _whole(self, code: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _pieces(sequence: Sequence) -> Iterator[str]:
    while (piece := sequence.pieces.get()) is not None:
        yield piece


def _usage(sequence: Sequence) -> dict[str, int]:
    prompt, written = len(sequence.prompt), len(sequence.written)
    return {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--name", help="default: the last part of MODEL")
    parser.add_argument("--port", type=int, default=8931, help="0 takes a free one, which is printed")
    parser.add_argument("--batch", type=int, default=32, help="answers written together at most")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", default="bfloat16" if torch.cuda.is_available() else "float32")
    options = parser.parse_args()
    engine = Engine(options)
    name = options.name or Path(options.model).stem
    server = ThreadingHTTPServer(
        ("127.0.0.1", options.port), type("Served", (Handler,), {"engine": engine, "name": name})
    )
    server.daemon_threads = True
    threading.Thread(target=engine.serve, daemon=True).start()
    print(f"serving {name} at http://127.0.0.1:{server.server_port}/v1", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
